"""Stalls of API server and controllers that a recording shows, and the clock that stands still in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from chaos.lab.recorded.parser import parse
from chaos.lab.recorded.recording import Observation, Operation, Recording, Stall
from chaos.lab.recorded.stalls import find_stalls, find_wakes
from chaos.lab.sim import SimClock
from tools.replay.stalled import StalledClock, StallingClock, controller_writes, still_times

BASE = datetime(2026, 11, 21, tzinfo=UTC).timestamp()
NODES = ("n1", "n2", "n3")
Entry = dict[str, Any]


def _lease(node: str, sent: float, came: float) -> Entry:
    renewed = datetime.fromtimestamp(BASE + sent, UTC).isoformat().replace("+00:00", "Z")
    body = {"metadata": {"name": node, "uid": f"l-{node}"}, "spec": {"renewTime": renewed}}
    return {"t": BASE + came, "kind": "leases", "type": "MODIFIED", "object": body}


def _node(name: str, type_: str, came: float, heartbeat: str = "00:00") -> Entry:
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-11-21T00:{heartbeat}Z"}
    body = {"metadata": {"name": name, "uid": name}, "spec": {}, "status": {"conditions": [ready]}}
    return {"t": BASE + came, "kind": "nodes", "type": type_, "object": body}


_HEAD = [
    {"t": BASE, "kind": "meta", "type": "recording", "object": {}},
    *(_node(name, "LIST", 0) for name in NODES),
]


def _recording(*late: Entry, cut: tuple[str, ...] = NODES, skew: float = 0.0) -> Recording:
    """Nodes that renew each 10 s; the renewals after 30 s of ``cut`` come 15 s late. n1's clock is ``skew`` ahead."""
    entries = list(_HEAD)
    for sent in range(0, 100, 10):
        for node in NODES:
            came = 45.0 if node in cut and 30 <= sent < 45 else sent + 0.1
            entries.append(_lease(node, sent + (skew if node == "n1" else 0), came))
    return parse(sorted([*entries, *late], key=lambda item: item["t"]))


def _seconds(stalls: list[Stall]) -> list[tuple[float, float]]:
    return [(round(stall.begin - BASE, 2), round(stall.end - BASE, 2)) for stall in stalls]


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        (_recording(), [(20.1, 45.0)]),
        (_recording(cut=()), []),
        (_recording(cut=("n2",)), []),  # one node is cut off
        (_recording(cut=("n2", "n3")), [(40.1, 45.0)]),  # then n1 was answered
        (_recording(skew=3600), [(20.1, 45.0)]),
        (_recording(skew=3600, cut=()), []),
        (_recording(_node("n2", "MODIFIED", 52, "00:40")), [(20.1, 52.0)]),  # another watch stalls for longer
        (_recording(_node("n2", "MODIFIED", 52, "00:51")), [(20.1, 45.0)]),  # in time
        (_recording(_node("n2", "MODIFIED", 33, "00:32"), _node("n3", "MODIFIED", 52, "00:40")), [(20.1, 45.0)]),
    ],
)
def test_a_stall_is_seen_by_late_renewals_of_most_nodes(
    recording: Recording, expected: list[tuple[float, float]]
) -> None:
    assert _seconds(recording.stalls) == expected


def _many(*stalls: tuple[float, float]) -> Recording:
    """Twenty nodes, of which one renews and reports each half second; all waits in ``stalls``."""

    def came(sent: float) -> float:
        end = next((end for begin, end in stalls if begin <= sent < end), None)
        return sent + 0.1 if end is None else end + sent / 1000

    entries = [{"t": BASE, "kind": "meta", "type": "recording", "object": {}}]
    entries += [_node(f"m{number}", "LIST", 0) for number in range(20)]
    for half in range(240):
        sent = half / 2
        node = _node(f"m{half % 20}", "MODIFIED", came(sent), f"{int(sent) // 60:02}:{int(sent) % 60:02}")
        entries += [_lease(f"m{half % 20}", sent, came(sent)), node]
    return parse(sorted(entries, key=lambda item: item["t"]))


@pytest.mark.parametrize(
    ("stalls", "expected"),
    [
        ((), []),
        (((20, 40),), [(19.6, 40.03)]),
        (((20, 40), (60, 69)), [(19.6, 40.03)]),  # eight nodes were late by more than 5 s
        (((20, 40), (60, 80)), [(19.6, 40.03), (59.6, 80.07)]),
    ],
)
def test_a_stall_of_many_nodes_ends_though_changes_follow_without_a_pause(
    stalls: tuple[tuple[float, float], ...], expected: list[tuple[float, float]]
) -> None:
    assert _seconds(_many(*stalls).stalls) == expected


def test_a_recording_without_leases_shows_no_stall() -> None:
    recording = _recording()
    recording.observations["leases"] = []
    assert find_stalls(recording) == []


def _owned(name: str, *, deleted: bool = False, kind: str = "StatefulSet", reason: str = "") -> dict[str, Any]:
    owners = [{"kind": kind, "name": "db", "uid": "o", "controller": True}] if kind else []
    metadata = {"name": name, "namespace": "demo", "uid": name, "ownerReferences": owners}
    target = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    dates = {"deletionTimestamp": "2026-11-21T00:01:00Z"} if deleted else {}
    return {"metadata": {**metadata, **dates}, "spec": {}, "status": {"conditions": [target] if reason else []}}


def _with_exit(
    at: float, *registered: float, cut: tuple[str, ...] = NODES, writes: tuple[float, ...] = ()
) -> Recording:
    recording = _recording(cut=cut)
    pod = ("kube-system", "kube-controller-manager-n1")
    recording.operations.append(Operation(BASE + at, "container-exit", "n1", {"pod": pod, "code": 1}))
    event = {"reason": "RegisteredNode", "metadata": {"name": "e"}}
    recording.observations["pods"] = [Observation(BASE + t, "ADDED", _owned(str(t))) for t in writes]
    recording.observations["events"] = [Observation(BASE + t, "ADDED", event) for t in registered]
    return recording


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        (_with_exit(50, 10, 70, 90), [(20.1, 70.0)]),
        (_with_exit(50), [(20.1, float("inf"))]),  # the next one never worked
        (_with_exit(50, 70, writes=(60, 74, 76)), [(20.1, 74.05)]),  # then the other caches were filled
        (_with_exit(50, 70, writes=(86,)), [(20.1, 70.0)]),
        (_with_exit(90, 95), [(20.1, 45.0)]),  # long after the stall: someone ended it
        (_with_exit(50, 70, cut=()), []),
    ],
)
def test_controllers_stand_still_until_nodes_are_registered(
    recording: Recording, expected: list[tuple[float, float]]
) -> None:
    assert _seconds(still_times(recording)) == expected


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        ((), []),
        ((_lease("n1", 48, 51),), [(45.0, 51.0)]),
        ((_lease("n1", 48, 51), _lease("n2", 49, 53.1)), [(45.0, 53.1)]),
        ((_lease("n1", 48, 51), _lease("n2", 51.5, 52), _lease("n3", 51, 53)), [(45.0, 51.0)]),  # n2 is in time
        ((_lease("n1", 46, 46.5), _lease("n2", 48, 51)), []),
    ],
)
def test_a_wake_lasts_until_a_renewal_comes_in_time(
    late: tuple[Entry, ...], expected: list[tuple[float, float]]
) -> None:
    recording = _recording(*late)
    leases = recording.observations["leases"]
    recording.observations["leases"] = [item for item in leases if not 48 <= item.t - BASE < 50.5]
    assert _seconds(recording.stalls) == [(20.1, 45.0)]
    assert _seconds(find_wakes(recording)) == expected


def test_a_wake_of_a_machine_that_stays_slow_ends() -> None:
    slow = [_lease("n1", at - 1.5, at) for at in range(46, 90)]
    recording = _recording()
    leases = [item for item in recording.observations["leases"] if item.t - BASE <= 45]
    recording.observations["leases"] = [*leases, *parse([*_HEAD, *slow]).observations["leases"]]
    assert _seconds(find_wakes(recording)) == [(45.0, 65.0)]


def test_the_answers_of_slow_renewals_are_known() -> None:
    seen = {(node, at - BASE): round(t - BASE, 2) for (node, at), t in _recording().answers.items()}
    assert seen == {(node, at): 44.9 for node in NODES for at in (30.0, 40.0)}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("ADDED", _owned("a"))], [1.05]),
        ([("ADDED", _owned("a", kind=""))], []),  # a user's
        ([("LIST", _owned("a")), ("MODIFIED", _owned("a"))], []),
        ([("LIST", _owned("a")), ("MODIFIED", _owned("a", deleted=True))], [2.05]),
        ([("LIST", _owned("a", deleted=True)), ("MODIFIED", _owned("a", deleted=True))], []),
        ([("LIST", _owned("a")), ("MODIFIED", _owned("a", deleted=True, reason="DeletionByTaintManager"))], []),
        ([("LIST", _owned("u")), ("MODIFIED", _owned("u", deleted=True))], []),  # deleted by a user
        ([("LIST", _owned("a")), ("DELETED", _owned("a", deleted=True))], []),  # the kubelet's
    ],
)
def test_writes_of_controllers_are_known(changes: list[tuple[str, dict[str, Any]]], expected: list[float]) -> None:
    recording = Recording(0.0, 100.0, {})
    recording.observations["pods"] = [Observation(float(t), *change) for t, change in enumerate(changes, 1)]
    recording.operations = [Operation(1.0, "user-delete", "", {"plural": "pods", "object": _owned("u")})]
    assert controller_writes(recording) == expected


@pytest.mark.parametrize(
    ("t", "expected"), [(5, 5), (10, 10), (15, 10), (20, 10), (22, 12), (30, 20), (35, 20), (50, 30)]
)
def test_time_stands_still_in_stalls(t: float, expected: float) -> None:
    clock = StalledClock([Stall(10, 20), Stall(30, 40)])
    assert clock.time(t) == expected
    assert clock.time(clock.original(expected)) == expected
    assert clock.original(expected) <= t


def test_timers_of_a_stalled_clock_wait_in_their_order() -> None:
    base = SimClock(0.0, 1)
    clock, seen = StallingClock(base), list[tuple[str, float]]()

    def note(name: str) -> None:
        seen.append((name, clock.now))

    for due, name in ((1, "before"), (4, "second"), (3, "first"), (9, "after")):
        clock.at(due, note, name)
    base.at(4, note, "others")
    clock.after(5, note, "cancelled").cancel()
    late = clock.at(4.5, note, "cancelled while it waits")
    base.at(2, clock.stall)
    base.at(5, late.cancel)
    base.at(6, clock.resume)
    base.run_until(10)
    assert seen == [("before", 1.0), ("others", 4.0), ("first", 6.0), ("second", 6.0), ("after", 9.0)]
    assert clock.rng is base.rng


def test_a_step_runs_what_was_due_and_nothing_that_follows() -> None:
    base = SimClock(0.0, 1)
    clock, seen = StallingClock(base), list[tuple[str, float]]()

    def note(name: str) -> None:
        seen.append((name, clock.now))
        if name == "cause":
            clock.after(0.1, note, "effect")
            clock.after(0, note, "effect at once")

    clock.at(3, note, "cause")
    clock.at(5, note, "later")
    for due, call in ((2, clock.stall), (4, clock.step), (6, clock.step), (8, clock.resume), (9, clock.step)):
        base.at(due, call)
    clock.at(10, note, "after")
    base.run_until(11)
    assert seen == [("cause", 4.0), ("effect at once", 6.0), ("effect", 6.0), ("later", 6.0), ("after", 10.0)]
