"""Marks are read of all Nodes, and removed only from a Node that has not changed since."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.node_traces import list_marks, remove_marks
from chaos.core.errors import NodefallError
from chaos.core.node_mark import FoundMark, NodeMark
from chaos.core.ports import Response
from tests.kit.fakes import FakeKube

MARK = NodeMark("r-1", "cordon", cordoned=False)
STALE = FoundMark("n1", MARK.key, MARK, "7")


class Nodes(FakeKube):
    """One answer to every request."""

    def __init__(self, answer: Response | KubeUnreachable) -> None:
        super().__init__({})
        self.given = answer
        self.bodies: list[tuple[str, str, Any]] = []

    def answer(self, method: str, path: str, body: Any) -> Response:
        self.bodies.append((method, path, body))
        if isinstance(self.given, KubeUnreachable):
            raise self.given
        return self.given


def listed(*nodes: dict[str, Any]) -> Nodes:
    return Nodes(Response(200, json.dumps({"items": list(nodes)}).encode(), {}))


def test_only_marks_are_found() -> None:
    marked = {"name": "n1", "resourceVersion": "7", "annotations": {"x": "y", **MARK.to_annotations()}}
    kube = listed({"metadata": {"name": "n0"}}, {"metadata": marked, "spec": {}})
    assert list_marks(kube) == [STALE]
    assert list_marks(listed()) == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Response(403, b'{"message": "no"}', {}), "answered 403: no"),
        (Response(200, b"<html>", {}), "cannot be read"),
        (KubeUnreachable("no-route", "no route"), "no route"),
    ],
)
def test_unknown_marks_are_an_error(answer: Response | KubeUnreachable, why: str) -> None:
    with pytest.raises(NodefallError, match=why):
        list_marks(Nodes(answer))


@pytest.mark.parametrize(
    ("answer", "problems"),
    [
        (Response(200, b"{}", {}), []),
        (Response(404, b"{}", {}), []),
        (Response(409, b"{}", {}), []),
        (Response(403, b'{"message": "no"}', {}), ["the mark of cordon on n1 stays: the API server answered 403: no"]),
        (KubeUnreachable("no-route", "no route"), ["the mark of cordon on n1 stays: no route"]),
    ],
)
def test_removal(answer: Response | KubeUnreachable, problems: list[str]) -> None:
    kube = Nodes(answer)
    assert remove_marks(kube, [STALE]) == problems
    metadata = {"resourceVersion": "7", "annotations": {MARK.key: None}}
    assert kube.bodies == [("PATCH", "/api/v1/nodes/n1", {"metadata": metadata})]
