"""Replay of what ``nodefall run`` records: only the fields of the allow-list, with templates, without behaviour."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from chaos.cluster.watch_codec import WatchCodec
from chaos.core.kube import RESOURCES
from chaos.lab.cluster import Cluster
from chaos.lab.objects import name_of
from chaos.lab.recorded.parser import parse
from chaos.lab.recorded.recording import Operation
from tests.kit.labtrace import Lines, Step, edit, record, spec
from tests.kit.simkit import VICTIM
from tools.replay.play import replay
from tools.replay.recorded_choices import condition_time, eviction_ranks, first_round, last_short

OFF: Step = (3, "poweroff", VICTIM, {}, lambda cluster: cluster.machines[VICTIM].logind.power_off())
CUT: Step = (3, "power-cut", VICTIM, {}, lambda cluster: cluster.machines[VICTIM].power_off())
BACK: Step = (90, "power-on", VICTIM, {}, lambda cluster: cluster.machines[VICTIM].power_on())


def _restarted(it: dict[str, Any]) -> None:
    it["spec"]["template"]["metadata"].setdefault("annotations", {})["kubectl.kubernetes.io/restartedAt"] = "now"


def _job(cluster: Cluster) -> None:
    """A Job whose pods end by themselves after 30 s, and fail with a disruption that does not count."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1.36"}]}
    notes = {"lab.nodefall.dev/runs-for": "30"}
    policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
    body = {"parallelism": 2, "completions": 2, "backoffLimit": 0, "podFailurePolicy": policy}
    template = {"metadata": {"annotations": notes}, "spec": pod}
    job = {"metadata": {"name": "work", "namespace": "demo"}, "spec": {**body, "template": template}}
    cluster.create_object("jobs", job)


def _evict_job(cluster: Cluster) -> None:
    pod = next(pod for pod in cluster.store.list("pods", "demo") if name_of(pod).startswith("work-"))
    cluster.evict_pod("demo", name_of(pod))


SCENARIOS: dict[str, tuple[list[Step], float]] = {
    "powered off and on": ([OFF, BACK], 60),
    "power cut": ([CUT, BACK], 60),
    "rolled out": ([(3, "rollout-restart", "", {}, edit("deployments", "demo", "web", _restarted))], 60),
    "a StatefulSet rolled out": ([(3, "rollout-restart", "", {}, edit("statefulsets", "demo", "db", _restarted))], 60),
    "a Job": ([(3, "apply", "", {}, _job), (9, "evict-pod", "", {}, _evict_job)], 70),
}  # fmt: skip


def _reduced(lines: Lines) -> Lines:
    """The lines as nodefall's observers write them."""
    codecs = {plural: WatchCodec(resource) for plural, resource in RESOURCES.items()}
    result: Lines = []
    for line in lines:
        if line["kind"] == "meta":
            meta = {key: value for key, value in line["object"].items() if key not in ("behaviour", "systemd")}
            result.append({**line, "object": {**meta, "nodefall": "0.2.0"}})
        elif line["kind"] in ("host", "action") or line["type"] == "BOOKMARK":
            result.append(line)
        elif line["kind"] in codecs:
            found = codecs[line["kind"]].decode_object(msgspec.Raw(msgspec.json.encode(line["object"])))
            body = json.loads(bytes(found.entry(line["t"], line["kind"], line["type"]).object))
            result.append({**line, "object": body})
    return result


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_recorded_fields_suffice(name: str) -> None:
    steps, after = SCENARIOS[name]
    recording = parse(_reduced(record(spec(7), steps, after)))
    result = replay(recording)
    assert [str(item) for item in result.differences] == []
    assert (result.findings, result.matched) == ([], result.total)
    assert result.total > 0


def _condition(at: float, status: str) -> dict[str, Any]:
    conditions = [{"type": "DiskPressure", "status": status}]
    body = {"metadata": {"name": "n1", "uid": "n"}, "spec": {}, "status": {"conditions": conditions}}
    return {"t": at, "kind": "nodes", "type": "LIST" if at == 0 else "MODIFIED", "object": body}


def _eviction(at: float, uid: str) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "demo", "name": uid, "uid": uid}
    body = {"metadata": {"name": f"e-{uid}", "uid": f"e-{uid}"}, "reason": "Evicted", "involvedObject": about}
    return {"t": at, "kind": "events", "type": "ADDED", "object": body}


def test_pressure_begins_and_ends_as_recorded() -> None:
    """The first eviction shows a round of the eviction manager; the condition outlasts the last round by 5 min."""
    pod: dict[str, Any] = {"metadata": {"name": "a", "namespace": "demo", "uid": "a"}, "status": {"phase": "Running"}}
    pod["spec"] = {"nodeName": "n1", "containers": [{"name": "c"}]}
    lines = [
        {"t": 0.0, "kind": "meta", "type": "recording", "object": {}},
        _condition(0, "False"),
        {"t": 0.0, "kind": "pods", "type": "LIST", "object": pod},
        _eviction(12.0, "a"),
        _eviction(13.0, "elsewhere"),
        _condition(17.5, "True"),
        _condition(500.0, "False"),
    ]
    recording, operation = parse(lines), Operation(5.0, "disk-pressure", "n1", {})
    assert (first_round(recording, operation, "disk"), condition_time(recording, operation, "disk")) == (12.0, 17.5)
    assert last_short(recording, operation, "disk") == 190.0
    assert eviction_ranks(recording) == {"a": 12.0, "elsewhere": 13.0}
    assert first_round(recording, operation, "memory") is None
    later = Operation(20.0, "disk-pressure", "n1", {})
    assert condition_time(recording, later, "disk") is None, "it was short before"
