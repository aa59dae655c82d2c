"""Containers that end by themselves: restartPolicy, CrashLoopBackOff, phases. pkg/kubelet kuberuntime doBackOff."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.pod_worker import Backoff
from chaos.lab.node.kubelet.status import go_duration
from chaos.lab.rules import PodRules
from tests.kit.simkit import VICTIM, Object, disruption, events, run, spec, started

LIMITS = PodRules().crash_loop_backoff


def _pod(policy: str, runs_for: float, code: int = 0, *, stops_after: float = 0, name: str = "task") -> Object:
    annotations = {
        "lab.nodefall.dev/runs-for": f"{runs_for:g}",
        "lab.nodefall.dev/exit-code": str(code),
        "lab.nodefall.dev/stops-after": f"{stops_after:g}",
    }
    body = {"containers": [{"name": "c"}], "restartPolicy": policy, "nodeName": VICTIM}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": body}


def _started(pod: Object, settle: float = 2.0) -> Cluster:
    cluster, _ = started(spec(workers=2), settle=1.0, recorded=False)
    cluster.create_object("pods", pod)
    run(cluster, settle)
    return cluster


def _get(cluster: Cluster, name: str = "task") -> Object:
    pod = cluster.store.get("pods", "default", name)
    assert pod is not None
    return pod


def _container(cluster: Cluster) -> Any:
    return _get(cluster)["status"]["containerStatuses"][0]


@pytest.mark.parametrize(
    ("policy", "code", "phase", "restarts"),
    [
        ("Never", 0, "Succeeded", 0),
        ("Never", 3, "Failed", 0),
        ("OnFailure", 0, "Succeeded", 0),
        ("OnFailure", 3, "Running", 1),
        ("Always", 0, "Running", 1),
        ("Always", 3, "Running", 1),
    ],
)
def test_restart_policies(policy: str, code: int, phase: str, restarts: int) -> None:
    cluster = _started(_pod(policy, 8, code))
    assert _get(cluster)["status"]["phase"] == "Running"
    run(cluster, 9.0)
    pod, container = _get(cluster), _container(cluster)
    assert (pod["status"]["phase"], container["restartCount"]) == (phase, restarts)
    ended = container["lastState" if restarts else "state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, "Error" if code else "Completed")
    assert "reason" not in pod["status"]
    assert not disruption(pod)


def test_delays_double_and_crash_loop_back_off_is_reported() -> None:
    cluster = _started(_pod("Always", 1, 1), settle=0.0)
    starts: list[float] = []
    cluster.store.subscribe(
        lambda change: (
            starts.append(cluster.sim.now)
            if change.plural == "pods" and change.object["status"]["containerStatuses"][0]["started"]
            else None
        )
    )
    run(cluster, 25.0)
    run(cluster, 5.0)
    waiting = _container(cluster)
    assert waiting["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    where = f"task_default({_get(cluster)['metadata']['uid']})"
    assert waiting["state"]["waiting"]["message"] == f"back-off 20s restarting failed container=c pod={where}"
    assert waiting["lastState"]["terminated"]["exitCode"] == 1
    assert (waiting["restartCount"], waiting["ready"]) == (2, False)
    assert events(cluster, "BackOff")[0]["message"] == f"Back-off restarting failed container c in pod {where}"
    run(cluster, 400.0)
    gaps = [round(after - before, 1) for before, after in pairwise(starts)]
    for gap, wait in zip(gaps, (0, 10, 20, 40), strict=False):
        assert 1 + wait <= gap <= 3 + 1.5 * wait
    assert 80 <= gaps[4] <= 3 + 1.5 * (80 + 30)


def test_pod_deleted_during_back_off_is_removed_at_once() -> None:
    cluster = _started(_pod("Always", 1, 1), settle=8.0)
    assert "waiting" in _container(cluster)["state"]
    cluster.delete_object("pods", "default", "task")
    run(cluster, 3.0)
    assert cluster.store.get("pods", "default", "task") is None


def test_sigterm_ends_containers_unless_they_end_by_themselves_sooner() -> None:
    cluster = _started(_pod("Always", 10, 4, stops_after=25), settle=3.0)
    begin = cluster.sim.now
    cluster.delete_object("pods", "default", "task")
    run(cluster, 9.5)
    assert cluster.store.get("pods", "default", "task") is None
    assert cluster.sim.now - begin < 10


def test_pod_that_ended_without_a_kubelet_is_restarted_in_its_sandbox() -> None:
    cluster = _started(_pod("Always", 10, 1), settle=5.0)
    address = _get(cluster)["status"]["podIP"]
    cluster.machines[VICTIM].kubelet.stop()
    run(cluster, 15.0)
    assert "running" in _container(cluster)["state"]
    cluster.machines[VICTIM].kubelet.start()
    run(cluster, 4.0)
    container = _container(cluster)
    assert (container["restartCount"], container["lastState"]["terminated"]["exitCode"]) == (1, 1)
    assert _get(cluster)["status"]["podIP"] == address
    assert not events(cluster, "SandboxChanged")


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Failed"), ("OnFailure", "Running")])
def test_power_cut_ends_a_pod_only_if_it_is_never_restarted(policy: str, phase: str) -> None:
    cluster = _started(_pod(policy, 10_000))
    cluster.machines[VICTIM].reset()
    run(cluster, 30.0)
    assert _get(cluster)["status"]["phase"] == phase
    assert _container(cluster)["restartCount"] == (phase == "Running")


@pytest.mark.parametrize(
    ("runs", "waits"),
    [([1, 1, 1, 1, 1, 1, 1], [0, 10, 20, 40, 80, 160, 300]), ([1, 1, 601, 1], [0, 10, 0, 10]), ([599, 599], [0, 10])],
)
def test_back_off_doubles_and_is_reset_after_ten_minutes(runs: list[float], waits: list[float]) -> None:
    backoff, now, found = Backoff(), 1000.0, []
    for seconds in runs:
        now += seconds
        found.append(backoff.remaining(now, now, LIMITS))
        ended, now = now, now + found[-1]
        backoff.advance(ended, now, LIMITS)
    assert found == waits


@pytest.mark.parametrize(("seconds", "text"), [(10, "10s"), (80, "1m20s"), (300, "5m0s")])
def test_go_durations(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


@pytest.mark.parametrize("value", ["-1", "soon", "nan", "inf"])
def test_runs_for_is_a_number_of_seconds(value: str) -> None:
    pod = _pod("Never", 1)
    pod["metadata"]["annotations"]["lab.nodefall.dev/runs-for"] = value
    with pytest.raises(InvalidError):
        _started(pod)


def test_unknown_restart_policy_is_rejected() -> None:
    with pytest.raises(InvalidError, match="Unsupported value"):
        _started(_pod("Sometimes", 1))


def test_containers_that_start_late() -> None:
    pod = _pod("Always", 60)
    pod["metadata"]["annotations"]["lab.nodefall.dev/starts-after"] = "12"
    cluster = _started(pod, settle=11.0)
    assert _get(cluster)["status"]["phase"] == "Pending"
    run(cluster, 3.0)
    assert _get(cluster)["status"]["phase"] == "Running"
