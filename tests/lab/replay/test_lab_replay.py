"""Replay of the recordings: all their states must come, and a changed recording must not match."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos.lab.recorded.parser import parse
from chaos.lab.recorded.recording import NotARecordingError, Operation, Recording
from chaos.lab.spec import ControllerSpec
from tools.replay.compare import compare, count_states
from tools.replay.play import play, replay
from tools.replay.settings import lab_spec

Lines = list[dict[str, Any]]
RECORDINGS = Path(__file__).parents[2] / "recordings"
STATES = {
    "01-graceful-poweroff": 55,
    "02-cancelled-shutdown-signal": 59,
    "05-power-cut": 75,
    "07-partition-from-control-plane": 58,
    "08-drain-blocked-then-allowed": 62,
    "10-priority-shutdown": 48,
    "12-partition-ipv4-only": 30,
    "16-graceful-poweroff-exit-codes": 76,
    "25-two-nodes-of-a-zone": 52,
    "27-poweroff-cancelled-in-flight-systemd-257": 100,
    "31-volume-force-deleted-pod": 29,
    "33-volume-graceful-poweroff": 32,
}


def lines_of(name: str) -> Lines:
    with gzip.open(RECORDINGS / f"{name}.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def recorded(name: str) -> Recording:
    return parse(lines_of(name))


def test_every_recording_is_in_the_table() -> None:
    assert set(STATES) == {path.name.removesuffix(".jsonl.gz") for path in RECORDINGS.glob("*.jsonl.gz")}


@pytest.mark.parametrize(("name", "states"), STATES.items())
def test_recording_is_a_history_of_the_lab(name: str, states: int) -> None:
    recording = recorded(name)
    result = replay(recording)
    assert [str(item) for item in result.differences] == []
    assert (result.matched, result.total, count_states(recording)) == (states, states, states)


def test_recording_is_its_own_history() -> None:
    """A recording compared with itself has no differences."""
    for name, states in STATES.items():
        recording = recorded(name)
        result = compare(recording, recording.observations, ControllerSpec())
        assert (result.matched, result.differences) == (states, [])


def no_grace(lines: Lines) -> None:
    for line in lines:
        if line["type"] == "configz":
            line["object"].update(shutdownGracePeriod="0s", shutdownGracePeriodCriticalPods="0s")


def short_grace_period(lines: Lines) -> None:
    lines[0]["object"]["controllerManager"]["nodeMonitorGracePeriod"] = "25s"


def old_systemd(lines: Lines) -> None:
    lines[0]["object"]["systemd"] = "252"


def slow_pods(lines: Lines) -> None:
    for rules in lines[0]["object"]["behaviour"].values():
        rules["stopsAfter"] = rules.get("stopsAfter", 0) + 9


def clean_exits(lines: Lines) -> None:
    for rules in lines[0]["object"]["behaviour"].values():
        rules["exit"] = 0


def other_operation(action: str) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        next(line for line in lines if line["kind"] == "action")["type"] = action

    return change


def without_operation(action: str) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        lines[:] = [line for line in lines if line["kind"] != "action" or line["type"] != action]

    return change


def without_changes(kind: str, name: str) -> Callable[[Lines], None]:
    """Drop the changes of an object, so that a user's changes never happened."""

    def change(lines: Lines) -> None:
        lines[:] = [
            line
            for line in lines
            if line["kind"] != kind or line["type"] != "MODIFIED" or line["object"]["metadata"].get("name") != name
        ]

    return change


def never_healed(lines: Lines) -> None:
    """Drop the end of the partition, and its duration."""
    without_operation("heal")(lines)
    for line in lines:
        if line["kind"] == "action":
            line["object"]["params"].pop("duration", None)


def without_claims(lines: Lines) -> None:
    lines[:] = [line for line in lines if not line["kind"].startswith("persistentvolume")]


def never_recovered(lines: Lines) -> None:
    """Drop the restart, and the kubelet's event about it."""
    without_operation("kubelet-restart")(lines)
    without_operation("power-on")(lines)
    lines[:] = [line for line in lines if line["kind"] != "events" or line["object"].get("reason") != "Starting"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("01-graceful-poweroff", no_grace),
        ("01-graceful-poweroff", slow_pods),
        ("01-graceful-poweroff", other_operation("power-cut")),
        ("01-graceful-poweroff", never_recovered),
        ("05-power-cut", short_grace_period),
        ("05-power-cut", other_operation("poweroff")),
        ("07-partition-from-control-plane", never_healed),
        ("08-drain-blocked-then-allowed", without_changes("poddisruptionbudgets", "web")),
        ("08-drain-blocked-then-allowed", without_changes("nodes", "rb-worker")),
        ("10-priority-shutdown", no_grace),
        ("16-graceful-poweroff-exit-codes", clean_exits),
        ("27-poweroff-cancelled-in-flight-systemd-257", old_systemd),
        ("27-poweroff-cancelled-in-flight-systemd-257", never_recovered),
        ("31-volume-force-deleted-pod", without_claims),
        ("31-volume-force-deleted-pod", without_operation("force-delete-pod")),
        ("33-volume-graceful-poweroff", without_claims),
        ("33-volume-graceful-poweroff", other_operation("power-cut")),
    ],
)
def test_a_changed_recording_does_not_match(name: str, change: Callable[[Lines], None]) -> None:
    """The lab replays changed facts or actions; the expected states are those of the recording."""
    lines = lines_of(name)
    real = parse(copy.deepcopy(lines))
    if change is no_grace and name.startswith("10"):
        for line in lines:
            if line["type"] == "configz":
                line["object"]["shutdownGracePeriodByPodPriority"] = None
    change(lines)
    changed = parse(lines)
    for seed in range(1, 3):
        spec = lab_spec(changed, changed.start)
        result = compare(real, play(changed, seed), spec.controllers)
        assert not result.is_match
        assert result.matched < result.total
        assert result.differences


@pytest.mark.parametrize(("shift", "same"), [(0.5, True), (30.0, False)])
def test_times_count(shift: float, same: bool) -> None:
    recording = recorded("01-graceful-poweroff")
    moved = {
        plural: [
            replace(item, t=item.t + shift if item.t > recording.first_operation_time() else item.t) for item in seen
        ]
        for plural, seen in recording.observations.items()
    }
    assert compare(recording, moved, ControllerSpec()).is_match is same


def test_same_seed_same_history() -> None:
    recording = recorded("02-cancelled-shutdown-signal")
    histories = [msgspec.json.encode([[s.t, s.type, s.object] for s in play(recording)["pods"]]) for _ in range(2)]
    assert histories[0] == histories[1]


def test_spec_follows_the_recording() -> None:
    spec = lab_spec(recorded("10-priority-shutdown"), 0.0)
    worker = next(node for node in spec.nodes if node.name == "ra-worker")
    buckets = {b.priority: b.shutdown_grace_period_seconds for b in worker.shutdown_grace_period_by_pod_priority}
    assert buckets == {100000: 10, 10000: 20, 1000: 15, 0: 12}
    assert [node.role for node in spec.nodes].count("control-plane") == 1
    assert 1.0 < worker.boot_seconds < 5.0
    zones = {node.zone for node in lab_spec(recorded("25-two-nodes-of-a-zone"), 0.0).nodes}
    assert {"a", "b"} <= zones


def test_what_cannot_be_replayed_is_a_finding() -> None:
    """The rest is compared; without the action the history is another one."""
    recording = recorded("01-graceful-poweroff")
    recording.operations += [
        Operation(recording.end, "set-on-fire", "ra-worker", {}),
        Operation(recording.end, "power-cut", "unknown-node", {}),
    ]
    result = replay(recording, 2)
    assert (result.matched, result.is_match) == (STATES["01-graceful-poweroff"], True)
    assert [text.split(":")[0] for text in result.findings] == [
        "action set-on-fire is not replayed",
        "action power-cut on 'unknown-node' is not replayed",
    ]
    recording.operations = [Operation(recording.first_operation_time(), "partition", "ra-worker", {"from": "moon"})]
    result = replay(recording, 1)
    assert not result.is_match
    assert result.findings[-1] == "action partition is not replayed: the lab does not simulate a partition from moon"


def test_nothing_was_done() -> None:
    lines = [line for line in lines_of("12-partition-ipv4-only") if line["kind"] != "action"]
    result = replay(parse(lines), 1)
    assert result.is_match
    assert "the recording has no actions" in result.findings[0]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [{"t": 1.0, "kind": "meta", "type": "recording", "object": {}}],
        [{"kind": "nodes"}],
        [{"t": 1.0, "kind": "meta", "type": "recording", "object": {}}, {"t": 2.0, "kind": "nodes", "type": "LIST"}],
    ],
)
def test_invalid_recordings(lines: Lines) -> None:
    with pytest.raises(NotARecordingError):
        parse(lines)


def test_back_off_of_daemon_sets_is_read_from_events() -> None:
    failures = recorded("10-priority-shutdown").daemon_failures()
    assert [(node, len(times)) for (_, node), times in failures.items()] == [("ra-worker", 6)]
