"""Stalls of API server and controllers that a recording shows, and the clock that stands still in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from chaos.lab.replay.parser import parse
from chaos.lab.replay.recording import Observation, Operation, Recording
from chaos.lab.replay.stalls import Stall, StalledClock, find_stalls, still_times
from chaos.lab.sim.clock import SimClock
from chaos.lab.sim.stalling import StallingClock

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


def _recording(*late: Entry, cut: tuple[str, ...] = NODES, skew: float = 0.0) -> Recording:
    """Nodes that renew each 10 s; the renewals after 30 s of ``cut`` come 15 s late. n1's clock is ``skew`` ahead."""
    entries = [{"t": BASE, "kind": "meta", "type": "recording", "object": {}}]
    entries += [_node(name, "LIST", 0) for name in NODES]
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
    assert _seconds(find_stalls(recording)) == expected


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
    assert _seconds(find_stalls(_many(*stalls))) == expected


def test_a_recording_without_leases_shows_no_stall() -> None:
    recording = _recording()
    recording.observations["leases"] = []
    assert find_stalls(recording) == still_times(recording) == []


def _with_exit(at: float, *registered: float, cut: tuple[str, ...] = NODES) -> Recording:
    recording = _recording(cut=cut)
    pod = ("kube-system", "kube-controller-manager-n1")
    recording.operations.append(Operation(BASE + at, "container-exit", "n1", {"pod": pod, "code": 1}))
    event = {"reason": "RegisteredNode", "metadata": {"name": "e"}}
    recording.observations["events"] = [Observation(BASE + t, "ADDED", event) for t in registered]
    return recording


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        (_with_exit(50, 10, 70, 90), [(20.1, 70.0)]),
        (_with_exit(50), [(20.1, float("inf"))]),  # the next one never worked
        (_with_exit(90, 95), [(20.1, 45.0)]),  # long after the stall: someone ended it
        (_with_exit(50, 70, cut=()), []),
    ],
)
def test_controllers_stand_still_until_nodes_are_registered(
    recording: Recording, expected: list[tuple[float, float]]
) -> None:
    assert _seconds(still_times(recording)) == expected


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
