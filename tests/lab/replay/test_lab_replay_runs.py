"""Replay of recordings that ``nodefall run`` made on real clusters, which were too busy for exact times."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chaos.lab.recorded.parser import parse
from chaos.lab.recorded.pod_lives import inferred_behaviour
from chaos.lab.recorded.recording import Recording
from tools.replay.play import replay

RUNS = Path(__file__).parents[2] / "recordings" / "runs"
STATES = {
    "cancelled-in-flight-1": 28,
    "capacity-registered-1": 10,
    "eviction-rate-1": 90,
    "fast-reboot-1": 50,
    "fast-reboot-2": 44,
    "force-delete-partitioned-1": 18,
    "kubelet-preemption-1": 21,
    "kubelet-restart-in-window-1": 35,
    "kubelet-restart-in-window-2": 35,
    "network-unavailable-1": 28,
    "no-execute-removed-in-time-1": 24,
    "rolling-update-counts-1": 33,
    "rolling-update-counts-2": 36,
    "taint-swapped-1": 36,
}
NOT_REPLAYED = {  # and why
    "etcd-leader-lost-1": "action etcd-leader-kill is not replayed: the lab does not simulate it",
    "zone-cut-off-1": "action partition is not replayed: the lab does not simulate a partition from other-zones",
}


BASE = datetime(2026, 11, 21, tzinfo=UTC).timestamp()


def _recording(name: str) -> Recording:
    with gzip.open(RUNS / f"{name}.jsonl.gz", "rt") as file:
        return parse(json.loads(line) for line in file)


def test_every_run_is_in_the_table() -> None:
    names = {path.name.removesuffix(".jsonl.gz") for path in RUNS.glob("*.jsonl.gz")}
    assert {*STATES, *NOT_REPLAYED} == names


@pytest.mark.parametrize(("name", "why"), NOT_REPLAYED.items())
def test_a_run_that_is_not_replayed_says_why(name: str, why: str) -> None:
    assert why in replay(_recording(name), 1).findings


@pytest.mark.parametrize("name", STATES)
def test_a_run_is_replayed(name: str) -> None:
    result = replay(_recording(name), 1)
    assert [str(item) for item in result.differences] == []
    assert result.matched == result.total == STATES[name]


def test_the_replay_begins_before_the_first_action() -> None:
    recording = _recording("fast-reboot-1")
    assert recording.start == pytest.approx(recording.first_operation_time() - 1.0)
    assert {item.type for item in recording.observations["pods"] if item.t <= recording.start} == {"LIST"}
    names = {pod["metadata"]["name"] for pod in recording.initial_objects("pods")}
    assert "db-0" in names


def _pod(at: float, ended: dict[str, Any] | None = None) -> dict[str, Any]:
    state = {"terminated": ended} if ended else {"running": {}}
    metadata = {"name": "one", "namespace": "demo", "uid": "u1"}
    spec = {"containers": [{"name": "c"}], "nodeName": "n1"}
    status = {"phase": "Running", "containerStatuses": [{"name": "c", "state": state}]}
    body = {"metadata": metadata, "spec": spec, "status": status}
    return {"t": BASE + at, "kind": "pods", "type": "MODIFIED", "object": body}


@pytest.mark.parametrize(
    ("ended", "rules"),
    [
        (
            {"exitCode": 3, "finishedAt": "2026-11-21T00:00:15Z"},
            {"exit": 3, "stopsAfter": pytest.approx(4.8, abs=1e-3)},
        ),
        ({"exitCode": 137, "finishedAt": "2026-11-21T00:00:40Z"}, {"ignoresSIGTERM": True}),
        ({"exitCode": 255, "reason": "Unknown", "finishedAt": "2026-11-21T00:00:40Z"}, None),
    ],
)
def test_how_containers_end_is_read_from_events_and_exits(ended: dict[str, Any], rules: dict[str, Any] | None) -> None:
    about = {"kind": "Pod", "namespace": "demo", "name": "one", "uid": "u1"}
    killing = {"reason": "Killing", "involvedObject": about, "firstTimestamp": "2026-11-21T00:00:10Z"}
    killing |= {"metadata": {"name": "e", "uid": "e"}}
    node = {"metadata": {"name": "n1", "uid": "n"}, "spec": {}, "status": {}}
    entries = [
        {"t": BASE, "kind": "meta", "type": "recording", "object": {}},
        {"t": BASE, "kind": "nodes", "type": "LIST", "object": node},
        {"t": BASE + 10.2, "kind": "events", "type": "ADDED", "object": killing},
        _pod(10.3),
        _pod(float(ended["finishedAt"][-3:-1]) + 0.85, ended),
    ]
    assert inferred_behaviour(parse(entries)) == ({"demo/one": rules} if rules else {})
