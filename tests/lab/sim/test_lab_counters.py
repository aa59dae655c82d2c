"""The controller-manager's counters are those of its controllers' deeds in the history. Facts section 4."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.store.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.controllers.metrics import format_metrics
from chaos.lab.spec import ControllerSpec
from tests.kit.simkit import VICTIM, Object, disruption, node, pods_on, run, spec, started, taints, workload

EVICTIONS = "node_collector_evictions_total"
DELETIONS = "taint_eviction_controller_pod_deletions_total"
LEADS = 'leader_election_master_status{name="kube-controller-manager"}'
OUT = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute", "value": "nodeshutdown"}
NONE = '{zone=""}'


def told(cluster: Cluster) -> dict[str, float]:
    """By name and labels."""
    lines = [line for line in format_metrics(cluster.controllers).splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def collected(errors: bool, reason: str) -> str:
    name = "pod_errors" if errors else "pods"
    return f'pod_gc_collector_force_delete_{name}_total{{namespace="demo",reason="{reason}"}}'


def zone(ready: int, bad: int, health: float, labels: str = NONE) -> dict[str, float]:
    return {
        f"node_collector_unhealthy_nodes_in_zone{labels}": bad,
        f"node_collector_zone_health{labels}": health,
        f"node_collector_zone_size{labels}": ready + bad,
    }


def with_workload(replicas: int = 4, zones: tuple[str, ...] = (), **controllers: Any) -> Cluster:
    lab = spec(workers=2, controllers=ControllerSpec(**controllers))
    for made, name in zip(lab.nodes[1:], zones, strict=False):
        made.zone = name
    cluster, _ = started(lab, settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    cluster.create_object("deployments", workload("web", replicas=replicas))
    run(cluster, 6.0)
    return cluster


def test_a_cluster_in_order() -> None:
    assert told(with_workload()) == {LEADS: 1, EVICTIONS + NONE: 0, DELETIONS: 0, **zone(3, 0, 100)}


def test_a_lost_node() -> None:
    """One node is tainted NoExecute, however many pods it has; each pod is counted when it is deleted."""
    cluster = with_workload()
    pods = len(pods_on(cluster, VICTIM))
    assert pods > 1
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    assert ("unreachable", "NoExecute") in taints(node(cluster))
    assert told(cluster) == {LEADS: 1, EVICTIONS + NONE: 1, DELETIONS: 0, **zone(2, 1, 100 * 2 / 3)}
    run(cluster, 310.0)
    deleted = [pod for pod in cluster.store.list("pods", "demo") if disruption(pod) == "DeletionByTaintManager"]
    assert told(cluster)[DELETIONS] == len(deleted) == pods
    cluster.machines[VICTIM].power_on()
    run(cluster, 60.0)
    assert told(cluster) == {LEADS: 1, EVICTIONS + NONE: 1, DELETIONS: pods, **zone(3, 0, 100)}


def test_a_swap_of_taints_is_no_eviction() -> None:
    cluster = with_workload()
    machine = cluster.machines[VICTIM]
    machine.runtime.stop_service()
    run(cluster, 70.0)
    assert ("not-ready", "NoExecute") in taints(node(cluster))
    machine.power_off()
    run(cluster, 70.0)
    assert {key for key, effect in taints(node(cluster)) if effect == "NoExecute"} == {"unreachable"}
    assert told(cluster)[EVICTIONS + NONE] == 1


def test_zones_have_counters_of_their_own() -> None:
    cluster = with_workload(zones=("a", "b"))
    first, second = (f'{{zone=":\x00:{name}"}}' for name in "ab")
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    found = told(cluster)
    assert {labels: found[EVICTIONS + labels] for labels in (first, second, NONE)} == {first: 1, second: 0, NONE: 0}
    assert found.items() >= {**zone(0, 1, 0, first), **zone(1, 0, 100, second), **zone(1, 0, 100)}.items()
    cluster.delete_object("nodes", "", VICTIM)
    run(cluster, 12.0)
    assert told(cluster).items() >= zone(0, 0, 100, first).items()


def test_out_of_service() -> None:
    cluster = with_workload()
    pods = len(pods_on(cluster, VICTIM))
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    obj: Object = clone(node(cluster))
    obj["spec"].setdefault("taints", []).append(OUT)
    cluster.update_object("nodes", obj)
    run(cluster, 30.0)
    found = told(cluster)
    assert (found[DELETIONS], found[collected(False, "out-of-service")]) == (pods, pods)
    assert collected(True, "out-of-service") not in found


def test_a_pod_that_another_duty_had_is_a_try_and_an_error() -> None:
    """It is orphaned and finished, one more than the threshold, when the loop looks at it."""
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
    run(cluster, 39.0)  # quarantine begins
    for name in ("p0", "p1"):
        cluster.store.patch("pods", "demo", name, lambda pod: pod["status"].update(phase="Failed"))
    cluster.controllers.pod_gc.run_next_at(cluster.sim.now + 2.0)
    run(cluster, 3.0)
    assert not cluster.store.list("pods", "demo")
    wanted = {("terminated", False): 1, ("orphaned", False): 2, ("orphaned", True): 1}
    assert told(cluster).items() >= {collected(error, reason): n for (reason, error), n in wanted.items()}.items()


def test_a_new_process_counts_from_nothing() -> None:
    """A node that is tainted already goes through its queue once more: NLC processTaintBaseEviction."""
    cluster = with_workload()
    cluster.machines[VICTIM].power_off()
    run(cluster, 400.0)
    assert told(cluster)[DELETIONS] > 0
    cluster.controllers.restart()
    assert told(cluster) == {LEADS: 1, DELETIONS: 0}
    run(cluster, 6.0)
    assert told(cluster) == {LEADS: 1, EVICTIONS + NONE: 1, DELETIONS: 0, **zone(2, 1, 100 * 2 / 3)}


@pytest.mark.parametrize("seed", [1, 7])
def test_to_tell_them_changes_no_history(seed: int) -> None:
    histories = []
    for looked in (False, True):
        cluster, history = started(spec(workers=2, seed=seed), settle=1.0, recorded=False)
        cluster.machines[VICTIM].power_off()
        for _ in range(70):
            run(cluster, 1.0)
            assert not looked or told(cluster)
        histories.append(history.lines())
    assert histories[0] == histories[1]
