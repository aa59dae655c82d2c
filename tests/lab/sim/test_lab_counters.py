"""Counters of kube-controller-manager match the operations in the history. Facts 4."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.http.component_ports import format_metrics
from chaos.lab.spec import ControllerSpec
from tests.kit.simkit import VICTIM, Object, disruption, node, pods_on, run, spec, started, taints, workload

EVICTIONS = "node_collector_evictions_total"
DELETIONS = "taint_eviction_controller_pod_deletions_total"
LEADS = 'leader_election_master_status{name="kube-controller-manager"}'
OUT = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute", "value": "nodeshutdown"}
NONE = '{zone=""}'


def metrics_of(cluster: Cluster) -> dict[str, float]:
    """Values by name and labels."""
    lines = [line for line in format_metrics(cluster.controllers).splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def collected(errors: bool, reason: str) -> str:
    name = "pod_errors" if errors else "pods"
    return f'pod_gc_collector_force_delete_{name}_total{{namespace="demo",reason="{reason}"}}'


def zone(ready: int, not_ready: int, health: float, labels: str = NONE) -> dict[str, float]:
    return {
        f"node_collector_unhealthy_nodes_in_zone{labels}": not_ready,
        f"node_collector_zone_health{labels}": health,
        f"node_collector_zone_size{labels}": ready + not_ready,
    }


def with_workload(replicas: int = 4, zones: tuple[str, ...] = (), **controllers: Any) -> Cluster:
    lab = spec(workers=2, controllers=ControllerSpec(**controllers))
    for node_spec, name in zip(lab.nodes[1:], zones, strict=False):
        node_spec.zone = name
    cluster, _ = started(lab, settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    cluster.create_object("deployments", workload("web", replicas=replicas))
    run(cluster, 6.0)
    return cluster


def test_counters_of_a_healthy_cluster() -> None:
    assert metrics_of(with_workload()) == {LEADS: 1, EVICTIONS + NONE: 0, DELETIONS: 0, **zone(3, 0, 100)}


def test_a_lost_node() -> None:
    """One NoExecute taint counts for any number of pods; each pod counts when it is deleted."""
    cluster = with_workload()
    pods = len(pods_on(cluster, VICTIM))
    assert pods > 1
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    assert ("unreachable", "NoExecute") in taints(node(cluster))
    assert metrics_of(cluster) == {LEADS: 1, EVICTIONS + NONE: 1, DELETIONS: 0, **zone(2, 1, 100 * 2 / 3)}
    run(cluster, 310.0)
    deleted = [pod for pod in cluster.store.list("pods", "demo") if disruption(pod) == "DeletionByTaintManager"]
    assert metrics_of(cluster)[DELETIONS] == len(deleted) == pods
    cluster.machines[VICTIM].power_on()
    run(cluster, 60.0)
    assert metrics_of(cluster) == {LEADS: 1, EVICTIONS + NONE: 1, DELETIONS: pods, **zone(3, 0, 100)}


def test_a_swap_of_taints_is_no_eviction() -> None:
    cluster = with_workload()
    machine = cluster.machines[VICTIM]
    machine.runtime.stop_service()
    run(cluster, 70.0)
    assert ("not-ready", "NoExecute") in taints(node(cluster))
    machine.power_off()
    run(cluster, 70.0)
    assert {key for key, effect in taints(node(cluster)) if effect == "NoExecute"} == {"unreachable"}
    assert metrics_of(cluster)[EVICTIONS + NONE] == 1


def test_zones_have_separate_counters() -> None:
    cluster = with_workload(zones=("a", "b"))
    first, second = (f'{{zone=":\x00:{name}"}}' for name in "ab")
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    found = metrics_of(cluster)
    assert {labels: found[EVICTIONS + labels] for labels in (first, second, NONE)} == {first: 1, second: 0, NONE: 0}
    assert found.items() >= {**zone(0, 1, 0, first), **zone(1, 0, 100, second), **zone(1, 0, 100)}.items()
    cluster.delete_object("nodes", "", VICTIM)
    run(cluster, 12.0)
    assert metrics_of(cluster).items() >= zone(0, 0, 100, first).items()


def test_out_of_service() -> None:
    cluster = with_workload()
    pods = len(pods_on(cluster, VICTIM))
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    obj: Object = clone(node(cluster))
    obj["spec"].setdefault("taints", []).append(OUT)
    cluster.update_object("nodes", obj)
    run(cluster, 30.0)
    found = metrics_of(cluster)
    assert (found[DELETIONS], found[collected(False, "out-of-service")]) == (pods, pods)
    assert collected(True, "out-of-service") not in found


def test_a_pod_deleted_by_another_step_counts_as_attempt_and_error() -> None:
    """The pod is both orphaned and terminated, one above the threshold, in the same loop."""
    cluster = with_workload(replicas=0, terminated_pod_gc_threshold=1)
    for name in ("p0", "p1"):
        pod = {
            "metadata": {"name": name, "namespace": "demo"},
            "spec": {"nodeName": VICTIM, "containers": [{"name": "c"}]},
        }
        cluster.create_object("pods", pod)
    run(cluster, 5.0)
    cluster.machines[VICTIM].power_off()
    cluster.delete_object("nodes", "", VICTIM)
    cluster.controllers.pod_gc.run_next_at(cluster.sim.now)
    run(cluster, 39.0)  # the quarantine starts
    for name in ("p0", "p1"):
        cluster.store.patch("pods", "demo", name, lambda pod: pod["status"].update(phase="Failed"))
    cluster.controllers.pod_gc.run_next_at(cluster.sim.now + 2.0)
    run(cluster, 3.0)
    assert not cluster.store.list("pods", "demo")
    expected = {("terminated", False): 1, ("orphaned", False): 2, ("orphaned", True): 1}
    assert (
        metrics_of(cluster).items() >= {collected(error, reason): n for (reason, error), n in expected.items()}.items()
    )


def test_a_new_process_counts_from_zero() -> None:
    """A node with the taint is queued once more: NLC processTaintBaseEviction."""
    cluster = with_workload()
    cluster.machines[VICTIM].power_off()
    run(cluster, 400.0)
    assert metrics_of(cluster)[DELETIONS] > 0
    cluster.controllers.restart()
    assert metrics_of(cluster) == {LEADS: 1, DELETIONS: 0}
    run(cluster, 6.0)
    assert metrics_of(cluster) == {LEADS: 1, EVICTIONS + NONE: 1, DELETIONS: 0, **zone(2, 1, 100 * 2 / 3)}


@pytest.mark.parametrize("seed", [1, 7])
def test_reading_metrics_does_not_change_the_history(seed: int) -> None:
    histories = []
    for reads_metrics in (False, True):
        cluster, history = started(spec(workers=2, seed=seed), settle=1.0, recorded=False)
        cluster.machines[VICTIM].power_off()
        for _ in range(70):
            run(cluster, 1.0)
            assert not reads_metrics or metrics_of(cluster)
        histories.append(history.lines())
    assert histories[0] == histories[1]
