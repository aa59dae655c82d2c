"""Events on the affected nodes.

Marks are read of all Nodes, and removed only from a Node that has not changed since.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.node_traces import NodeEvents, list_marks, remove_marks
from chaos.core.action import Undo
from chaos.core.command import HostCommand
from chaos.core.errors import NodefallError
from chaos.core.node_mark import FoundMark, NodeMark
from chaos.core.plan import PlannedStep
from chaos.core.ports import Response
from tests.kit.fakes import FakeKube

MARK = NodeMark("r-1", "cordon", cordoned=False)
STALE = FoundMark("n1", MARK.key, MARK, "7")


class Api(FakeKube):
    def __init__(self, answer: Response | KubeUnreachable) -> None:
        super().__init__({})
        self.given, self.bodies = answer, list[dict[str, Any]]()

    def answer(self, method: str, path: str, body: Any) -> Response:
        assert (method, path) == ("POST", "/api/v1/namespaces/default/events")
        self.bodies.append(body)
        if isinstance(self.given, KubeUnreachable):
            raise self.given
        return self.given


def step(node: str = "n1", command: str = "poweroff") -> PlannedStep:
    return PlannedStep("off", "poweroff", node, {}, {}, (HostCommand(("systemctl", command)),), Undo(), ())


def events(answer: Response | KubeUnreachable) -> tuple[NodeEvents, Api]:
    api = Api(answer)
    return NodeEvents(api, "run-1", "ann@here/7-ab", {"n1": "uid-1"}), api


def test_events_of_injection_and_undo() -> None:
    node_events, api = events(Response(201, b"{}", {}))
    assert node_events.emit_injected(step(), 1_700_000_000.0) == ""
    assert node_events.emit_undone(step(), 1_700_000_100.0, "the node is Ready") == ""
    first, second = api.bodies
    assert first["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-1"}
    assert (first["type"], first["reason"]) == ("Warning", "NodefallInjected")
    assert first["message"] == "run run-1 of ann@here/7-ab, step off: poweroff: systemctl poweroff"
    assert first["lastTimestamp"] == "2023-11-14T22:13:20Z"
    assert (second["type"], second["reason"]) == ("Normal", "NodefallUndone")
    assert first["metadata"]["name"] != second["metadata"]["name"]


def test_a_step_without_a_node_has_no_event() -> None:
    node_events, api = events(Response(201, b"{}", {}))
    assert node_events.emit_injected(step(node=""), 0.0) == ""
    assert not api.bodies


@pytest.mark.parametrize(
    "answer",
    [Response(403, b'{"message": "no"}', {}), KubeUnreachable("timeout", "no")],
    ids=["forbidden", "unreachable"],
)
def test_a_failed_event_does_not_stop_the_run(answer: Response | KubeUnreachable) -> None:
    node_events, _ = events(answer)
    assert node_events.emit_injected(step(), 0.0) == "no Event on n1: no"


def test_a_long_command_is_truncated() -> None:
    node_events, api = events(Response(201, b"{}", {}))
    node_events.emit_injected(step(command="x" * 5000), 0.0)
    assert len(api.bodies[0]["message"]) == 1024


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
