"""Node pressure, NetworkUnavailable, cordon: facts 5.4, 9 and 12."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.admission import victim
from chaos.lab.node.kubelet.pod_worker import Worker
from chaos.lab.rules import NodePressureRules
from tests.kit.simkit import VICTIM, History, Object, disruption, events, node, pods_on, run, started, taints


def _condition(cluster: Cluster, type_: str) -> tuple[str, str]:
    found = next(item for item in node(cluster)["status"]["conditions"] if item["type"] == type_)
    return found["status"], found["reason"]


def _evicted(history: History, since: float) -> list[tuple[float, Object]]:
    seen: dict[str, tuple[float, Object]] = {}
    for when, _, pod in history.since(since, "pods"):
        if disruption(pod) == "TerminationByKubelet":
            seen.setdefault(pod["metadata"]["uid"], (when, pod))
    return sorted(seen.values(), key=lambda item: item[0])


@pytest.mark.parametrize(
    ("kind", "condition", "reasons", "taint"),
    [
        ("memory", "MemoryPressure", ("KubeletHasInsufficientMemory", "KubeletHasSufficientMemory"), "memory-pressure"),
        ("disk", "DiskPressure", ("KubeletHasDiskPressure", "KubeletHasNoDiskPressure"), "disk-pressure"),
        ("pid", "PIDPressure", ("KubeletHasInsufficientPID", "KubeletHasSufficientPID"), "pid-pressure"),
    ],
)
def test_condition_and_taint_until_five_minutes_after_the_pressure(
    kind: str, condition: str, reasons: tuple[str, str], taint: str
) -> None:
    cluster, _ = started(recorded=False)
    machine = cluster.machines[VICTIM]
    machine.pressure = {kind}  # type: ignore[arg-type]
    run(cluster, 21.5)  # a round and a status sync
    assert _condition(cluster, condition) == ("True", reasons[0])
    assert taints(node(cluster)) == {(taint, "NoSchedule")}
    machine.pressure = set()
    run(cluster, 285.0)
    assert _condition(cluster, condition)[0] == "True"
    run(cluster, 30.0)
    assert _condition(cluster, condition) == ("False", reasons[1])
    assert taints(node(cluster)) == set()
    assert _condition(cluster, "Ready")[0] == "True"


def test_one_pod_is_evicted_per_round_and_no_critical_one() -> None:
    """Facts 9: DisruptionTarget TerminationByKubelet; Failed, Evicted with the same message, unless all exit 0."""
    cluster, history = started()
    begin = cluster.sim.now
    cluster.machines[VICTIM].pressure = {"disk"}
    run(cluster, 62.0)
    evicted = [(when, pod) for when, pod in _evicted(history, begin) if pod["spec"]["nodeName"] == VICTIM]
    assert 4 <= len(evicted) <= 6
    times = [when for when, _ in evicted]
    assert all(8.0 < later - earlier < 13.0 for earlier, later in pairwise(times))
    ends = set()
    for _, pod in evicted:
        status = pod["status"]
        text = "The node was low on resource: ephemeral-storage. Threshold quantity: 10%, available: 0. "
        target = next(item for item in status["conditions"] if item["type"] == "DisruptionTarget")
        assert target["message"] == text
        failed = any(item["state"]["terminated"]["exitCode"] for item in status["containerStatuses"])
        end = ("Failed", "Evicted", text) if failed else ("Succeeded", None, None)
        assert (status["phase"], status.get("reason"), status.get("message")) == end
        ends.add(status["phase"])
        assert pod["metadata"]["labels"]["app"] != "agent"
    assert ends == {"Failed", "Succeeded"}
    assert [pod["spec"].get("priority", 0) for _, pod in evicted] == sorted(
        pod["spec"]["priority"] for _, pod in evicted
    )
    assert len(events(cluster, "Evicted")) >= len(evicted)
    run(cluster, 60.0)
    agents = [pod for pod in pods_on(cluster, VICTIM) if pod["metadata"]["labels"]["app"] == "agent"]
    assert [pod["status"]["phase"] for pod in agents] == ["Running"]


@pytest.mark.parametrize(
    ("kind", "requests", "phase"),
    [("disk", True, "Failed"), ("disk", False, "Failed"), ("memory", False, "Failed"), ("memory", True, "Running")],
)
def test_pods_rejected_under_pressure(kind: str, requests: bool, phase: str) -> None:
    cluster, _ = started(recorded=False)
    machine = cluster.machines[VICTIM]
    machine.pressure = {kind}  # type: ignore[arg-type]
    run(cluster, 21.5)
    machine.pressure = set()  # no further eviction; the condition remains
    container: Object = {"name": "c", "image": "busybox"}
    if requests:
        container["resources"] = {"requests": {"memory": "10Mi"}}
    pod = {"metadata": {"name": "late"}, "spec": {"nodeName": VICTIM, "containers": [container]}}
    cluster.create_object("pods", pod)
    run(cluster, 3.0)
    found = cluster.store.get("pods", "default", "late")
    assert found is not None
    assert found["status"]["phase"] == phase
    if phase == "Failed":
        condition = "DiskPressure" if kind == "disk" else "MemoryPressure"
        assert (found["status"]["reason"], disruption(found)) == ("Evicted", "")
        assert found["status"]["message"] == f"Pod was rejected: The node had condition: [{condition}]. "


def _worker(name: str, priority: int = 0, qos: str = "BestEffort", static: bool = False) -> Worker:
    pod: Object = {"status": {"qosClass": qos}}
    return Worker(clone(pod), name, "n", name, priority, 30, "running", is_static=static)


@pytest.mark.parametrize(
    ("workers", "name"),
    [
        ([], None),
        ([_worker("a", 5), _worker("b", 1)], "b"),
        ([_worker("a", 1, "Guaranteed"), _worker("b", 9, "Burstable"), _worker("c", 99)], "c"),
        ([_worker("a", 2_000_000_000), _worker("b", static=True)], None),
    ],
)
def test_order_of_evictions(workers: list[Worker], name: str | None) -> None:
    chosen = victim(workers, lambda _: 0.0, NodePressureRules())
    assert (chosen.name if chosen else None) == name


def test_network_unavailable_is_a_taint_and_leaves_the_node_ready() -> None:
    cluster, _ = started(recorded=False)
    machine = cluster.machines[VICTIM]
    machine.report_network(False)
    run(cluster, 30.0)
    assert _condition(cluster, "NetworkUnavailable") == ("True", "NoRouteCreated")
    assert _condition(cluster, "Ready")[0] == "True"
    assert taints(node(cluster)) == {("network-unavailable", "NoSchedule")}
    machine.power_off()  # facts 5.2: never set to Unknown
    run(cluster, 62.0)
    assert _condition(cluster, "NetworkUnavailable")[0] == "True"
    machine.power_on()
    machine.report_network(True)
    run(cluster, 30.0)
    assert taints(node(cluster)) == set()


def test_kubelet_reports_a_cordon_at_its_next_sync() -> None:
    cluster, _ = started()
    before = {pod["metadata"]["uid"] for pod in pods_on(cluster, VICTIM)}
    for unschedulable, reason in ((True, "NodeNotSchedulable"), (False, "NodeSchedulable")):
        changed: Object = clone(node(cluster))
        changed["spec"]["unschedulable"] = unschedulable
        cluster.update_object("nodes", changed)
        run(cluster, 10.5)
        assert [event["source"]["component"] for event in events(cluster, reason)] == ["kubelet"]
    assert {pod["metadata"]["uid"] for pod in pods_on(cluster, VICTIM)} == before


def test_memory_pressure_ends_with_the_power_and_disk_pressure_does_not() -> None:
    cluster, _ = started(recorded=False)
    machine = cluster.machines[VICTIM]
    machine.pressure = {"memory", "disk", "pid"}
    machine.reset()
    assert machine.pressure == {"disk"}
