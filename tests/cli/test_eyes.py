"""Prometheus is only needed, and only asked, where the experiment has queries."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chaos.cli.eyes import ask_once
from chaos.model.errors import NodefallError, Refused
from chaos.model.experiment import Query
from chaos.model.inventory import Inventory

QUERIES = [Query(name="up", query="up")]


def inventory(**prometheus: Any) -> Inventory:
    given = {"prometheus": prometheus} if prometheus else {}
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "x"}, "lab": {}}
    return Inventory.model_validate({**head, **given})


def test_no_query_needs_no_prometheus_and_no_secret() -> None:
    ask_once([], inventory())
    ask_once([], inventory(url="http://127.0.0.1:1", credentials={"env": "NODEFALL_NO_SUCH_VARIABLE"}))


@pytest.mark.parametrize(
    ("prometheus", "kind", "says"),
    [
        ({}, Refused, "the experiment asks Prometheus"),
        ({"url": "http://127.0.0.1:1", "credentials": {"env": "NODEFALL_NO_SUCH_VARIABLE"}}, Refused, "is not set"),
        ({"url": "http://127.0.0.1:1"}, NodefallError, "Prometheus at http://127.0.0.1:1"),
    ],
)
def test_what_cannot_be_asked_is_told_before_anything_is_touched(
    prometheus: dict[str, Any], kind: type[NodefallError], says: str
) -> None:
    with pytest.raises(kind) as caught:
        ask_once(QUERIES, inventory(**prometheus))
    assert says in caught.value.message


def test_a_user_has_a_password() -> None:
    with pytest.raises(ValidationError, match="user needs credentials"):
        inventory(url="http://127.0.0.1:1", user="me")
