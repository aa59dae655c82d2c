"""Containers of a replay: they start, are ready and end as recorded; static pods among them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from chaos.lab.objects import name_of, node_of, uid_of
from chaos.lab.recorded.implied import inferred_requests
from chaos.lab.recorded.parser import parse
from chaos.lab.recorded.pod_lives import PodLife, pod_lives
from tests.kit.labtrace import Lines, Step, record, spec
from tests.kit.simkit import VICTIM
from tools.replay.play import replay
from tools.replay.recorded_choices import eviction_times, has_constraints
from tools.replay.settings import disables_forced_detach

BASE = 1_800_000_000.0
STATIC = "kube-scheduler-cp"
NODE: dict[str, Any] = {
    "metadata": {"name": "cp", "uid": "n", "labels": {"node-role.kubernetes.io/control-plane": ""}},
    "spec": {},
    "status": {
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
            }
        ]
    },
}


def _line(at: float, kind: str, type_: str, body: Any, node: str = "") -> dict[str, Any]:
    line = {"t": BASE + at, "kind": kind, "type": type_, "object": body}
    return {**line, "node": node} if node else line


def _static(number: int, state: dict[str, Any], *, ready: bool) -> dict[str, Any]:
    """A static pod in the ``number``-th run of its container."""
    status = {"name": "c", "restartCount": number, "containerID": f"id-{number}", "state": state}
    reason = {} if ready else {"reason": "ContainersNotReady"}
    return {
        "metadata": {
            "name": STATIC,
            "namespace": "kube-system",
            "uid": "u1",
            "annotations": {"kubernetes.io/config.mirror": "hash", "kubernetes.io/config.source": "file"},
            "ownerReferences": [{"kind": "Node", "name": "cp", "uid": "n", "controller": True}],
        },
        "spec": {"nodeName": "cp", "containers": [{"name": "c"}], "priority": 2_000_001_000},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False", **reason}],
            "containerStatuses": [status],
        },
    }


def _ended(second: int) -> dict[str, Any]:
    return {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": f"2027-01-15T08:00:{second:02}Z"}}


def _crash() -> Lines:
    """The probe of a static pod fails, its container ends, the next one is ready after 10 s."""
    meta = {"kubernetes": "v1.36.2", "nodefall": "0.2.0"}
    return [
        _line(0, "meta", "recording", meta),
        _line(0, "nodes", "LIST", NODE),
        _line(0, "pods", "LIST", _static(0, {"running": {}}, ready=True)),
        _line(5, "action", "clock-skew", {"step": "skew", "phase": "begin"}, "cp"),
        _line(15, "pods", "MODIFIED", _static(0, {"running": {}}, ready=False)),
        _line(20, "pods", "MODIFIED", _static(0, _ended(20), ready=False)),
        _line(21, "pods", "MODIFIED", _static(1, {"running": {}}, ready=False)),
        _line(31, "pods", "MODIFIED", _static(1, {"running": {}}, ready=True)),
        _line(60, "pods", "BOOKMARK", {"metadata": {}}),
    ]


def _life(lines: Lines) -> PodLife:
    (life,) = pod_lives(parse(lines)).values()
    return life


def test_runs_of_a_pod() -> None:
    life = _life(_crash())
    old, new = life.runs
    assert (old.is_old, old.readiness) == (True, [(BASE + 15, False)])
    assert old.ended is not None
    assert (round(old.ended[0] - BASE, 3), old.ended[1]) == (19.65, 1)
    assert (new.is_old, new.delay, new.ready_after) == (False, 1.0, 10.0)


def test_readiness_of_a_static_pod_is_replayed() -> None:
    result = replay(parse(_crash()), 1)
    assert ([str(item) for item in result.differences], result.matched) == ([], result.total)
    assert result.total == 4, "of the node, and three of the pod"


@pytest.mark.parametrize("missing", [4, 7])
def test_another_readiness_does_not_match(missing: int) -> None:
    lines = _crash()
    other = copy.deepcopy(lines)
    del other[missing]
    assert len(_life(other).runs) == 2
    assert _life(other) != _life(lines)


def test_a_new_leader_restarts_the_controllers() -> None:
    about = {"kind": "Lease", "namespace": "kube-system", "name": "kube-controller-manager"}
    event = {"reason": "LeaderElection", "message": "cp_1 became leader", "involvedObject": about}
    body = {"metadata": {"name": "e", "uid": "e"}, **event, "firstTimestamp": "2027-01-15T08:00:30Z"}
    lines = [*_crash()[:-1], _line(30.2, "events", "ADDED", body), _crash()[-1]]
    assert [item.action for item in parse(lines).operations if item.t == BASE + 30.2] == ["controller-manager-restart"]
    lines[-2]["type"] = "DELETED"
    assert [item for item in parse(lines).operations if item.action == "controller-manager-restart"] == []


def test_a_forced_power_off_bypasses_logind() -> None:
    off: Step = (0, "poweroff", VICTIM, {"force": True}, lambda cluster: cluster.machines[VICTIM].power_off())
    back: Step = (100, "power-on", VICTIM, {}, lambda cluster: cluster.machines[VICTIM].power_on())
    result = replay(parse(record(spec(7), [off, back], 60)), 1)
    assert [str(item) for item in result.differences] == []


def test_a_slow_start_is_repeated() -> None:
    """Starts and late statuses of a busy machine are no mechanism."""
    back: Step = (100, "power-on", VICTIM, {}, lambda cluster: cluster.machines[VICTIM].power_on())
    cut: Step = (0, "power-cut", VICTIM, {}, lambda cluster: cluster.machines[VICTIM].power_off())
    lines = record(spec(7), [cut, back], 90)
    started = max(line["t"] for line in lines if line["kind"] == "action")
    for line in lines:
        if line["kind"] == "pods" and line["t"] > started and line["object"].get("spec", {}).get("nodeName") == VICTIM:
            line["t"] += 12.0
    lines.sort(key=lambda line: line["t"])
    result = replay(parse(lines), 1)
    assert result.matched >= 0.9 * result.total, [str(item) for item in result.differences]


def test_requests_explain_a_preemption() -> None:
    def pod(name: str, priority: int, *conditions: dict[str, str]) -> dict[str, Any]:
        return {
            "metadata": {"name": name, "namespace": "demo", "uid": name},
            "spec": {"nodeName": "cp", "priority": priority, "containers": [{"name": "c"}]},
            "status": {"phase": "Running", "conditions": list(conditions)},
        }

    text = "Pod was preempted by Kubelet to accommodate a critical pod."
    target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": text}
    node = copy.deepcopy(NODE)
    node["status"]["allocatable"] = {"cpu": "3"}
    lines = [
        _line(0, "meta", "recording", {}),
        _line(0, "nodes", "LIST", node),
        *(_line(0, "pods", "LIST", pod(name, 0)) for name in ("a", "b", "other")),
        _line(9, "pods", "ADDED", pod("critical", 2_000_000_000)),
        *(_line(11, "pods", "MODIFIED", pod(name, 0, target)) for name in ("a", "b")),
    ]
    assert inferred_requests(parse(lines)) == {"a": "1500m", "b": "1500m", "critical": "3000m"}
    lines[2]["object"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    assert inferred_requests(parse(lines)) == {}


def test_evicted_first_is_evicted_first() -> None:
    recording = parse(record(spec(7), [(0, "drain", VICTIM, {}, _evict_tiers)], 40))
    times = eviction_times(recording, recording.start)
    evicted = {name_of(item.object) for item in recording.observations["pods"] if node_of(item.object) == VICTIM}
    assert {name for _, name in times} <= evicted
    assert {name.split("-")[1] for _, name in times} == {"a", "b", "c"}
    assert eviction_times(recording, recording.end) == {}


def _evict_tiers(cluster: Any) -> None:
    for pod in list(cluster.store.pods_on(VICTIM)):
        if name_of(pod).startswith("tier-"):
            cluster.evict_pod(pod["metadata"]["namespace"], name_of(pod))


def test_which_recordings_have_constraints() -> None:
    lines = _crash()
    assert not has_constraints(parse(lines))
    lines[2]["object"]["spec"]["schedulerName"] = "default-scheduler"
    assert has_constraints(parse(lines))
    assert uid_of(parse(lines).initial_objects("pods")[0]) == "u1"


def test_forced_detach_is_on_unless_a_volume_shows_it() -> None:
    cut: Step = (0, "power-cut", VICTIM, {}, lambda cluster: cluster.machines[VICTIM].power_off())
    lab_spec = spec(7)
    delete: Step = (95, "force-delete-pod", "", {}, _drop_disk)
    assert not disables_forced_detach(parse(record(lab_spec, [cut, delete], 385, volumes=True)))
    lab_spec = spec(7)
    lab_spec.controllers.disable_force_detach_on_timeout = True
    recording = parse(record(lab_spec, [cut, delete], 440, volumes=True))
    assert disables_forced_detach(recording)
    result = replay(recording, 1)
    assert [str(item) for item in result.differences] == []


def _drop_disk(cluster: Any) -> None:
    pod = next(pod for pod in cluster.store.pods_on(VICTIM) if name_of(pod).startswith("disk"))
    cluster.delete_object("pods", pod["metadata"]["namespace"], name_of(pod), 0)
