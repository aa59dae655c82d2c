"""The printed roles of a game day are enough; each right that they lack is named before anything is changed.

The reviews are answered by the lab's authorizer, which knows the rules of roles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos.app.day.document import day_permissions, load_game_day
from chaos.cluster.cluster_state import missing_permissions, refuse_missing
from chaos.core.errors import Refused
from chaos.core.inventory import Inventory
from chaos.core.permission import Permission, role_manifests
from chaos.core.ports import Response
from chaos.lab.http.access import Access, review
from chaos.lab.users import Rule, UserSpec
from tests.kit.deployments import granted
from tests.kit.fakes import FakeKube
from tests.kit.processes import EXPERIMENTS

INVENTORY = Inventory.model_validate(
    {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "pods"},
        "cluster": {"kubeconfig": "none", "allowNodeProxy": True, "namespace": "nodefall"},
        "defaults": {"transport": "pod", "options": {"namespace": "chaos"}},
    }
)


class Reviewer(FakeKube):
    """An API server that only reviews the rights of a ServiceAccount with the roles of ``permissions``."""

    def __init__(self, permissions: Sequence[Permission]) -> None:
        super().__init__({})
        account = {"kind": "ServiceAccount", "name": "days", "namespace": "nodefall"}
        rules = msgspec.convert(granted(role_manifests(permissions, "days", account)), list[Rule])
        name = "system:serviceaccount:nodefall:days"
        self._user = Access([UserSpec(name=name, rules=rules)]).users[1]

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        assert (method, path) == ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        return Response(201, json.dumps(review("SelfSubjectAccessReview", body, self._user)).encode(), {})


@pytest.mark.parametrize("name", ["first", "monthly"])
def test_each_right_in_turn(name: str) -> None:
    needed = day_permissions(load_game_day(Path(EXPERIMENTS / "gamedays" / f"{name}.yaml")), INVENTORY)
    assert len(needed) > 50
    assert missing_permissions(Reviewer(needed), needed) == []
    for permission in needed:
        others = [each for each in needed if each != permission]
        with pytest.raises(Refused) as refused:
            refuse_missing(Reviewer(others), needed)
        assert refused.value.message == f"the credentials of the kubeconfig may not {permission}"
