"""Prometheus is only needed, and only asked, where the experiment has queries."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chaos.model.errors import NodefallError, Refused
from chaos.model.experiment import Experiment, Query
from chaos.model.inventory import Inventory
from chaos.session.eyes import ask_once
from chaos.session.loading import host_facts
from chaos.session.wiring import catalogue

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


def experiment(action: str, assertion: str) -> Experiment:
    asked = {"assert": assertion, "within": "10s"}
    spec = {
        "title": "x",
        "targets": {"victim": {}},
        "steadyState": [{"assert": "nodes-ready"}],
        "method": [{"name": "go", "action": action, "target": "victim"}],
        "hypothesis": [asked],
    }
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "x"}}
    return Experiment.model_validate({**head, "spec": spec})


@pytest.mark.parametrize(
    ("action", "assertion", "asked"),
    [
        ("cordon", "nodes-ready", False),
        ("cordon", "inhibitor-held", True),
        ("cordon", "at-most-one", True),
        ("poweroff", "nodes-ready", True),
    ],
)
def test_whose_hosts_are_asked(action: str, assertion: str, asked: bool) -> None:
    wanted = host_facts(experiment(action, assertion), catalogue(), {"victim": ("n1", "n2")})
    assert {node: facts is not None for node, facts in wanted.items()} == {"n1": asked, "n2": asked}


def test_a_user_has_a_password() -> None:
    with pytest.raises(ValidationError, match="user needs credentials"):
        inventory(url="http://127.0.0.1:1", user="me")
