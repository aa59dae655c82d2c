"""Pod admission of the kubelet, and preemption for critical pods. Facts 9 and 12; pkg/kubelet/preemption."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.admission import NoVictimsError, victims, worker_requests
from chaos.lab.node.kubelet.pod_worker import Worker
from chaos.lab.node.kubelet.static_pods import MANIFESTS
from tests.kit.simkit import VICTIM, Object, disruption, events, run, spec, started


def _pod(name: str, cpu: str = "", memory: str = "", **body: Any) -> Object:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    container = {"name": "c", "image": "busybox", "resources": {"requests": requests} if requests else {}}
    return {
        "metadata": {"name": name, "annotations": {"lab.nodefall.dev/stops-after": "2"}},
        "spec": {"nodeName": VICTIM, "containers": [container], **body},
    }


def _cluster(*pods: Object) -> Cluster:
    cluster, _ = started(spec(workers=2), settle=1.0, recorded=False)
    for pod in pods:
        cluster.create_object("pods", pod)
    run(cluster, 3.0)
    return cluster


def _status(cluster: Cluster, name: str) -> Any:
    pod = cluster.store.get("pods", "default", name)
    assert pod is not None
    return pod["status"]


def _phases(cluster: Cluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in cluster.store.list("pods", "default")}


def _node(cluster: Cluster, change: Any) -> None:
    node: Object = clone(cluster.store.get("nodes", "", VICTIM))
    change(node)
    cluster.update_object("nodes", node)


@pytest.mark.parametrize(
    ("pod", "reason", "message"),
    [
        (
            _pod("late", "600m"),
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000",
        ),
        (
            _pod("late", memory="8Gi"),
            "OutOfmemory",
            "Node didn't have enough resource: memory, requested: 8589934592, used: 1048576, capacity: 8589934592",
        ),
        (
            _pod("late", nodeSelector={"no": "where"}),
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
        (_pod("late", "500m"), "", ""),
        (_pod("late"), "", ""),
    ],
)
def test_pod_that_does_not_fit_is_rejected(pod: Object, reason: str, message: str) -> None:
    cluster = _cluster(_pod("first", "1500m", "1Mi"))
    cluster.create_object("pods", pod)
    run(cluster, 3.0)
    status = _status(cluster, "late")
    if not reason:
        assert status["phase"] == "Running"
        return
    rejected = ("Failed", reason, f"Pod was rejected: {message}")
    assert (status["phase"], status["reason"], status["message"]) == rejected
    assert [event["message"] for event in events(cluster, reason)] == [message]
    assert "conditions" not in status
    assert f'kubelet_admission_rejections_total{{reason="{reason}"}} 1' in (
        cluster.machines[VICTIM].kubelet.metrics_text()
    )


def test_maximum_number_of_pods() -> None:
    cluster = _cluster(*(_pod(f"pod-{number:03}") for number in range(111)))
    assert list(_phases(cluster).values()).count("Running") == 110
    (event,) = events(cluster, "OutOfpods")
    assert event["message"] == "Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110"


def test_an_ended_pod_uses_no_resources() -> None:
    done = _pod("done", "2", restartPolicy="Never")
    done["metadata"]["annotations"]["lab.nodefall.dev/runs-for"] = "1"
    cluster = _cluster(done)
    assert _phases(cluster) == {"done": "Succeeded"}
    cluster.create_object("pods", _pod("late", "2"))
    run(cluster, 3.0)
    assert _phases(cluster)["late"] == "Running"


@pytest.mark.parametrize(("effect", "phase"), [("NoExecute", "Failed"), ("NoSchedule", "Running")])
def test_pod_bound_by_a_client_meets_only_no_execute_taints(effect: str, phase: str) -> None:
    """Facts 12: without the scheduler, spec.unschedulable and NoSchedule taints have no effect."""
    cluster = _cluster()
    seen = []
    cluster.store.subscribe(lambda change: seen.append(change.object["status"]) if change.plural == "pods" else None)

    def change(node: Object) -> None:
        node["spec"]["unschedulable"] = True
        node["spec"].setdefault("taints", []).append({"key": "maintenance", "effect": effect})

    _node(cluster, change)
    cluster.create_object("pods", _pod("late"))
    run(cluster, 3.0)
    assert seen[-1]["phase"] == phase
    if phase == "Failed":  # then taint eviction deletes the pod
        text = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
        assert (seen[-1]["reason"], seen[-1]["message"]) == ("TaintToleration", f"Pod was rejected: {text}")
    assert not events(cluster, "Scheduled")


PREEMPTED = "Preempted in order to admit critical pod"


@pytest.mark.parametrize(
    ("exit_code", "phase", "reason", "message"),
    [(0, "Succeeded", None, None), (7, "Failed", "Preempting", PREEMPTED)],
)
def test_critical_pod_preempts_what_is_needed(
    exit_code: int, phase: str, reason: str | None, message: str | None
) -> None:
    """As seen on a v1.36.2 cluster: the phase follows the exit codes, as in a shutdown."""
    small, large, other = _pod("small", "200m"), _pod("large", "1"), _pod("other", "600m")
    other["metadata"]["annotations"]["lab.nodefall.dev/exit-code"] = str(exit_code)
    cluster = _cluster(_pod("nothing"), small, large, other)
    cluster.create_object("pods", _pod("vital", "500m", priorityClassName="system-node-critical"))
    run(cluster, 1.0)
    assert _status(cluster, "vital")["phase"] == "Pending"  # pending until the victim has ended
    run(cluster, 4.0)
    assert _phases(cluster) == {
        "nothing": "Running", "small": "Running", "large": "Running", "other": phase, "vital": "Running",
    }  # fmt: skip
    status = _status(cluster, "other")
    assert (status.get("reason"), status.get("message")) == (reason, message)
    found = cluster.store.get("pods", "default", "other")
    assert found is not None
    assert disruption(found) == "TerminationByKubelet"
    (target,) = [item for item in status["conditions"] if item["type"] == "DisruptionTarget"]
    assert target["message"] == "Pod was preempted by Kubelet to accommodate a critical pod."
    assert "deletionTimestamp" not in found["metadata"]
    assert [event["message"] for event in events(cluster, "Preempting")] == [PREEMPTED]


def test_critical_pod_is_rejected_if_preemption_does_not_help() -> None:
    cluster = _cluster(_pod("large", "2"))
    vital: Any = {"priorityClassName": "system-node-critical", "nodeSelector": {"no": "where"}}
    cluster.create_object("pods", _pod("vital", "1", **vital))
    cluster.create_object("pods", _pod("huge", "3", priorityClassName="system-node-critical"))
    run(cluster, 5.0)
    assert _phases(cluster) == {"large": "Running", "vital": "Failed", "huge": "Failed"}
    assert _status(cluster, "vital")["reason"] == "NodeAffinity"
    status = _status(cluster, "huge")
    assert status["reason"] == "UnexpectedAdmissionError"
    assert "no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]" in status["message"]


def test_static_pod_is_critical_and_may_preempt() -> None:
    cluster = _cluster(_pod("large", "2"))
    pod = _pod("vital", "1")
    pod["spec"].pop("nodeName")
    pod["metadata"]["namespace"] = "default"
    machine = cluster.machines[VICTIM]
    machine.files[f"{MANIFESTS}vital.yaml"] = json.dumps(pod)
    machine.kubelet.restart()
    run(cluster, 8.0)
    assert _phases(cluster) == {"large": "Succeeded", f"vital-{VICTIM}": "Running"}


def test_deleted_while_it_waits_for_its_victims() -> None:
    cluster = _cluster(_pod("large", "2"))
    cluster.create_object("pods", _pod("vital", "1", priorityClassName="system-node-critical"))
    run(cluster, 0.5)
    cluster.delete_object("pods", "default", "vital")
    run(cluster, 6.0)
    assert _phases(cluster) == {"large": "Succeeded"}


def _worker(name: str, cpu: int, memory: int = 0, qos: str = "Burstable", priority: int = 0) -> Worker:
    amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    resources: dict[str, Object] = {
        "BestEffort": {}, "Burstable": {"requests": amounts}, "Guaranteed": {"requests": amounts, "limits": amounts},
    }  # fmt: skip
    pod = {"spec": {"priority": priority, "containers": [{"name": "c", "resources": resources[qos]}]}}
    return Worker(pod, name, "n", name, priority, 30, "running")


_CRITICAL = _worker("vital", 0, priority=2_000_000_000)


@pytest.mark.parametrize(
    ("others", "needs", "expected"),
    [
        ([], {}, []),
        ([_worker("a", 100), _worker("b", 300), _worker("c", 500)], {"cpu": 250}, ["b"]),
        ([_worker("a", 200), _worker("b", 300)], {"cpu": 400}, ["b", "a"]),
        ([_worker("a", 300, 64), _worker("b", 300, 32)], {"cpu": 300}, ["b"]),  # the smaller of two equally near
        ([_worker("a", 300, qos="Guaranteed"), _worker("b", 300)], {"cpu": 300}, ["b"]),
        ([_worker("a", 300, qos="Guaranteed"), _worker("b", 100)], {"cpu": 300}, ["a"]),
        ([_worker("a", 0, qos="BestEffort"), _worker("b", 100)], {"pods": 1}, ["a"]),
        ([_worker("a", 300, priority=2_000_000_000), _worker("b", 900)], {"cpu": 300}, ["b"]),
        ([_worker("a", 300, 10), _worker("b", 10, 300)], {"cpu": 200, "memory": 200 << 20}, ["a", "b"]),
    ],
)
def test_victims(others: list[Worker], needs: dict[str, int], expected: list[str]) -> None:
    assert [worker.name for worker in victims(_CRITICAL, others, needs)] == expected


@given(
    st.lists(st.tuples(st.integers(0, 500), st.sampled_from(["BestEffort", "Burstable", "Guaranteed"])), max_size=8),
    st.integers(1, 1500),
)
def test_victims_are_sufficient_and_all_necessary(pods: list[tuple[int, str]], needed: int) -> None:
    others = [_worker(f"{index}", cpu, qos=qos) for index, (cpu, qos) in enumerate(pods)]
    total = sum(worker_requests(worker)["cpu"] for worker in others)
    if total < needed:
        with pytest.raises(NoVictimsError):
            victims(_CRITICAL, others, {"cpu": needed})
        return
    chosen = victims(_CRITICAL, others, {"cpu": needed})
    amounts = [worker_requests(worker)["cpu"] for worker in chosen]
    assert len(set(chosen)) == len(chosen)
    assert sum(amounts) >= needed
