"""Nodes that come back as new ones: how slowly they are registered, and the pass that finds them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.apiserver_link import MESSAGES, Registration
from chaos.lab.objects import condition
from chaos.lab.recorded.recording import Observation, Operation, Recording
from tests.kit.labtrace import spec
from tests.kit.simkit import VICTIM
from tools.replay.containers import follow_registrations, registrations
from tools.replay.play import monitor_pass

START = datetime(2026, 11, 21, tzinfo=UTC).timestamp()
UNCHECKED, NO_CSI_NODE, BOTH = MESSAGES


def _node(status: str, message: str = "", since: float = 0.0, taints: tuple[str, ...] = ()) -> dict[str, Any]:
    changed = datetime.fromtimestamp(START + since, UTC).isoformat().replace("+00:00", "Z")
    ready = {"type": "Ready", "status": status, "message": message, "lastTransitionTime": changed}
    keys = [{"key": key, "effect": "NoExecute"} for key in taints]
    return {"metadata": {"name": VICTIM, "uid": "v"}, "spec": {"taints": keys}, "status": {"conditions": [ready]}}


def _recording(*nodes: tuple[float, str, dict[str, Any]]) -> Recording:
    recording = Recording(START, START + 300, {})
    recording.observations["nodes"] = [Observation(START + t, type_, node) for t, type_, node in nodes]
    return recording


OLD, GONE, READY = (0, "LIST", _node("True")), (5, "DELETED", _node("True")), _node("True", "posting")


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([OLD], []),
        ([OLD, GONE, (20, "ADDED", _node("False", NO_CSI_NODE)), (21.8, "MODIFIED", READY)], [(NO_CSI_NODE, 1.8)]),
        (
            [OLD, (20, "ADDED", _node("False", BOTH)), (21, "MODIFIED", _node("False", BOTH)), (25, "MODIFIED", READY)],
            [(BOTH, 5)],
        ),
        ([OLD, (20, "ADDED", _node("False", UNCHECKED)), (20.7, "MODIFIED", READY)], [None]),  # too short to be a state
        ([OLD, (20, "ADDED", _node("False", UNCHECKED))], [None]),
        ([OLD, (20, "ADDED", _node("False", "no network")), (25, "MODIFIED", READY)], [None]),  # a fault, not chance
        ([OLD, (20, "ADDED", READY)], [None]),
        (
            [OLD, GONE, (20, "ADDED", READY), GONE, (40, "ADDED", _node("False", BOTH)), (43, "MODIFIED", READY)],
            [None, (BOTH, 3)],
        ),
    ],
)
def test_slow_registrations_are_known(
    nodes: list[tuple[float, str, dict[str, Any]]], expected: list[tuple[str, float] | None]
) -> None:
    found = [(it.message, round(it.seconds, 3)) if it else None for it in registrations(_recording(*nodes), VICTIM)]
    assert found == expected
    assert registrations(_recording(*nodes), "other") == []


@pytest.mark.parametrize(
    ("slow", "expected"),
    [
        ([], [("False", UNCHECKED, 0), ("True", "kubelet is posting ready status", 0)]),
        ([None], [("False", UNCHECKED, 0), ("True", "kubelet is posting ready status", 0)]),
        ([Registration(NO_CSI_NODE, 4.0)], [("False", NO_CSI_NODE, 0), ("True", "kubelet is posting ready status", 4)]),
        (
            [Registration(NO_CSI_NODE, 25.0)],
            [("False", NO_CSI_NODE, 0), ("True", "kubelet is posting ready status", 25)],
        ),
    ],
)
def test_a_kubelet_registers_its_node_as_slowly(
    slow: list[Registration | None], expected: list[tuple[str, str, int]]
) -> None:
    cluster = Cluster(spec(1))
    cluster.start()
    cluster.warm_up()
    kubelet = cluster.machines[VICTIM].kubelet
    kubelet.registrations += slow
    kubelet.stop()
    cluster.delete_object("nodes", "", VICTIM)
    seen: list[tuple[float, str, str]] = []

    def note(change: Any) -> None:
        ready = condition(change.object, "Ready")
        if change.key[1] == VICTIM and ready and (not seen or seen[-1][1:] != (ready["status"], ready["message"])):
            seen.append((cluster.sim.now, ready["status"], ready["message"]))

    cluster.store.subscribe(note, "nodes")
    kubelet.start()
    cluster.sim.run_until(cluster.sim.now + 40)
    assert [(status, text, int(t - seen[0][0])) for t, status, text in seen] == expected
    assert kubelet.registrations == []


def test_the_kubelets_follow_the_recording() -> None:
    cluster = Cluster(spec(1))
    added = (20.0, "ADDED", _node("False", NO_CSI_NODE)), (24.0, "MODIFIED", READY)
    follow_registrations(cluster, _recording(OLD, *added))
    queued = {name: machine.kubelet.registrations for name, machine in cluster.machines.items()}
    assert queued.pop(VICTIM) == [Registration(NO_CSI_NODE, 4.0)]
    assert not any(queued.values())


def _event(t: float, reason: str, node: str = VICTIM, type_: str = "ADDED") -> Observation:
    body = {"metadata": {"name": "e", "uid": f"e{t}"}, "reason": reason, "involvedObject": {"name": node}}
    return Observation(START + t, type_, body)


UNKNOWN = _node("Unknown", since=40)


@pytest.mark.parametrize(
    ("nodes", "events", "expected"),
    [
        ([OLD, (40.3, "MODIFIED", UNKNOWN)], [], 40.3),
        ([OLD, (41.4, "MODIFIED", UNKNOWN)], [], 41.4),
        ([OLD, (44, "MODIFIED", UNKNOWN)], [], 40.5),  # it came late
        ([OLD, (50, "MODIFIED", _node("False", taints=("node.kubernetes.io/not-ready",)))], [], 49.95),
        ([OLD], [_event(3, "RegisteredNode")], None),  # of a new controller manager
        ([OLD, GONE], [_event(8, "RemovingNode"), _event(33, "RegisteredNode")], 8),
        ([OLD, GONE], [_event(8, "RemovingNode", type_="LIST"), _event(9, "RemovingNode", "other")], None),
        ([OLD, GONE, (20, "ADDED", READY)], [_event(23, "RegisteredNode")], 23),
        ([OLD, GONE, (40.3, "MODIFIED", UNKNOWN)], [_event(8, "RemovingNode")], 40.3),
    ],
)
def test_a_pass_of_the_node_controller_is_known(
    nodes: list[tuple[float, str, dict[str, Any]]], events: list[Observation], expected: float | None
) -> None:
    recording = _recording(*nodes)
    recording.observations["events"] = events
    found = monitor_pass(recording)
    assert (found if found is None else round(found - START, 2)) == expected


@pytest.mark.parametrize(
    ("action", "starts", "expected"),
    [("reboot", (60,), 2.0), ("reboot", (), 0.0), ("power-on", (13,), 3.0), ("kubelet-restart", (60,), 0.0)],
)
def test_how_long_a_boot_takes(action: str, starts: tuple[float, ...], expected: float) -> None:
    recording = _recording(OLD)
    recording.operations = [Operation(START + 10, action, VICTIM, {})]
    recording.observations["events"] = [_event(t, "Starting") for t in starts]
    for item in recording.observations["events"]:
        item.object["involvedObject"]["kind"], item.object["source"] = "Node", {"component": "kubelet"}
    assert recording.boot_seconds(VICTIM) == pytest.approx(expected)
