"""Scenes in a small cluster in which every breakage is tested against a correct run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chaos.lab.apiserver.deletion import EvictionRefused
from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.metrics import STATE_FILE, state_file
from chaos.lab.objects import name_of, namespace_of, set_condition
from chaos.lab.spec import Taint
from tests.kit.invariants import Checker
from tests.kit.invariants_world import OUT_OF_SERVICE
from tests.kit.simkit import VICTIM, Object, pods_on, run, spec, with_priorities, workload

_ALL = ["ra-control-plane", VICTIM, "ra-worker2", "ra-worker3"]
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@dataclass(frozen=True)
class Scene:
    """One scene. ``play``: operations once the workload runs; ``lab``: settings of the LabSpec."""

    play: Callable[[Cluster], None]
    lab: dict[str, Any] = field(default_factory=dict)
    buckets: list[tuple[int, int]] | None = None
    tolerate: int = 20
    claims: bool = False
    logind: bool = True


def play(scene: Scene, breakages: list[str]) -> Checker:
    """Run the scene in a new cluster with these breakages."""
    lab = spec(breakages=breakages, inhibitor_lost_after_cancel="never", **scene.lab)
    for node in lab.nodes:
        node.logind = scene.logind
    cluster = Cluster(with_priorities(lab, scene.buckets) if scene.buckets else lab)
    checker = Checker(cluster)
    cluster.start()
    run(cluster, 3.0)
    _apply(cluster, scene)
    run(cluster, 70.0)
    scene.play(cluster)
    return checker


def _apply(cluster: Cluster, scene: Scene) -> None:
    tolerations = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": scene.tolerate,
        }
        for key in ("unreachable", "not-ready")
    ]
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    for name, value in (("low", 10), ("high", 10000)):
        cluster.create_object("priorityclasses", {"metadata": {"name": name}, "value": value})
    low, high = ({"tolerations": tolerations, "priorityClassName": name} for name in ("low", "high"))
    cluster.create_object("deployments", workload("web", stops=3, replicas=6, pod=dict(low)))
    cluster.create_object("deployments", workload("front", stops=2, code=3, replicas=4, pod=dict(high)))
    more: dict[str, Any] = {"replicas": 3, "stops": 1}
    if scene.claims:
        templates = [{"metadata": {"name": "data"}, "spec": _CLAIM}]
        more = {"replicas": 6, "stops": 4, "volumeClaimTemplates": templates}
    cluster.create_object("statefulsets", workload("db", podManagementPolicy="Parallel", pod=dict(low), **more))
    budget = {"minAvailable": 5, "selector": {"matchLabels": {"app": "web"}}}
    cluster.create_object("poddisruptionbudgets", {"metadata": {"name": "web", "namespace": "demo"}, "spec": budget})


def _taint(cluster: Cluster, key: str, effect: str, name: str = VICTIM) -> None:
    node: Object = clone(cluster.store.get("nodes", "", name))
    node["spec"].setdefault("taints", []).append({"key": key, "effect": effect})
    cluster.update_object("nodes", node)


def _delete_pods(cluster: Cluster, app: str, grace: int | None = None) -> None:
    """Delete the app's pods on the victim."""
    for pod in pods_on(cluster, VICTIM):
        if name_of(pod).startswith(app):
            cluster.delete_object("pods", namespace_of(pod), name_of(pod), grace)


def power_cut(cluster: Cluster) -> None:
    cluster.machines[VICTIM].power_off()
    run(cluster, 180.0)
    cluster.machines[VICTIM].power_on()
    run(cluster, 60.0)


def shutdown(cluster: Cluster) -> None:
    cluster.machines[VICTIM].logind.power_off()
    run(cluster, 60.0)
    cluster.machines[VICTIM].power_on()
    run(cluster, 90.0)


def every_shutdown(cluster: Cluster) -> None:
    """Shut down one worker after the other: some breakages show only at a particular moment of the kubelet."""
    for name in _ALL[1:]:
        cluster.machines[name].logind.power_off()
        run(cluster, 60.0)


def busy_shutdown(cluster: Cluster) -> None:
    """Shut down while one pod is being stopped slowly."""
    slow = {"terminationGracePeriodSeconds": 600, "priorityClassName": "low", "nodeName": VICTIM}
    pod = workload("slow", stops=500, pod=slow)["spec"]["template"]
    pod["metadata"] |= {"name": "slow", "namespace": "demo"}
    cluster.create_object("pods", pod)
    run(cluster, 5.0)
    cluster.delete_object("pods", "demo", "slow")
    run(cluster, 1.0)
    shutdown(cluster)


def signals(cluster: Cluster) -> None:
    """Cancel a shutdown halfway, start another at once, then cancel one at its end."""
    logind = cluster.machines[VICTIM].logind
    for active in (True, False, True):
        logind.emit_prepare_for_shutdown(active)
        run(cluster, 1.0)
    run(cluster, 60.0)
    logind.emit_prepare_for_shutdown(False)
    run(cluster, 60.0)


def outage(*names: str) -> Callable[[Cluster], None]:
    """Cut the power of these machines at once."""

    def cut(cluster: Cluster) -> None:
        for name in names:
            cluster.machines[name].power_off()
        run(cluster, 150.0)

    return cut


def swap(cluster: Cluster) -> None:
    """Stop the runtime for Ready=False, then cut the power for Unknown."""
    cluster.machines[VICTIM].runtime.stop_service()
    run(cluster, 60.0)
    cluster.machines[VICTIM].power_off()
    run(cluster, 150.0)


def untaint(cluster: Cluster) -> None:
    """Power on before the tolerations end."""
    cluster.machines[VICTIM].partition()
    run(cluster, 80.0)
    cluster.machines[VICTIM].heal()
    run(cluster, 120.0)


def controller_restart(cluster: Cluster) -> None:
    cluster.machines[VICTIM].power_off()
    run(cluster, 80.0)
    cluster.controllers.restart()
    run(cluster, 150.0)


def orphans(cluster: Cluster) -> None:
    cluster.machines[VICTIM].power_off()
    run(cluster, 5.0)
    cluster.delete_object("nodes", "", VICTIM)
    run(cluster, 150.0)


def deletions(cluster: Cluster) -> None:
    for app in ("web", "front", "db"):
        _delete_pods(cluster, app)
    run(cluster, 90.0)


def dead_volumes(cluster: Cluster) -> None:
    """Delete pods on a dead node; their volumes are detached 6 min after the removal of the pods."""
    cluster.machines[VICTIM].power_off()
    run(cluster, 80.0)
    _delete_pods(cluster, "db")
    run(cluster, 420.0)
    _delete_pods(cluster, "db", grace=0)
    run(cluster, 800.0)


def out_of_service(cluster: Cluster) -> None:
    cluster.machines[VICTIM].power_off()
    run(cluster, 80.0)
    _taint(cluster, OUT_OF_SERVICE, "NoExecute")
    run(cluster, 120.0)


def daemons(cluster: Cluster) -> None:
    _taint(cluster, "example.com/closed", "NoSchedule")
    run(cluster, 5.0)
    cluster.create_object("daemonsets", workload("agent"))
    run(cluster, 20.0)


def registered_again(cluster: Cluster) -> None:
    """Delete a node whose kubelet registers it again, with a taint."""
    cluster.machines[VICTIM].spec.taints.append(Taint(key="example.com/new", effect="NoSchedule"))
    cluster.delete_object("nodes", "", VICTIM)
    run(cluster, 1.0)
    cluster.machines[VICTIM].kubelet.restart()
    run(cluster, 20.0)


def scheduled(cluster: Cluster) -> None:
    """Schedule a shutdown and cancel it before its time."""
    logind = cluster.machines[VICTIM].logind
    logind.schedule("poweroff", cluster.sim.now + 60.0)
    run(cluster, 20.0)
    logind.cancel_scheduled()
    run(cluster, 60.0)


def new_pods(cluster: Cluster) -> None:
    """Scale up beside a node with NoSchedule and one with PreferNoSchedule."""
    _taint(cluster, "example.com/closed", "NoSchedule")
    _taint(cluster, "example.com/poor", "PreferNoSchedule", "ra-worker2")
    run(cluster, 1.0)
    cluster.create_object("deployments", workload("more", replicas=9))
    requests = [{"name": "c", "image": "busybox:1.36", "resources": {"requests": {"cpu": "1m"}}}]
    cluster.create_object("deployments", workload("burstable", replicas=3, pod={"containers": requests}))
    run(cluster, 20.0)


def stale(cluster: Cluster) -> None:
    """Set DisruptionTarget on a pod that is not deleted."""
    pod = next(item for item in pods_on(cluster, VICTIM) if name_of(item).startswith("front"))
    new = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": ""}
    now = cluster.sim.timestamp()
    cluster.store.patch_status("pods", namespace_of(pod), name_of(pod), lambda obj: set_condition(obj, new, now))
    run(cluster, 200.0)


def evictions(cluster: Cluster) -> None:
    """Evict pods at the rate of a drain."""
    for pod in [pod for pod in cluster.store.list("pods") if name_of(pod).startswith("web")]:
        try:
            cluster.evict_pod(namespace_of(pod), name_of(pod))
        except EvictionRefused:
            continue
    run(cluster, 90.0)


def without_logind(cluster: Cluster) -> None:
    """Restart a kubelet with an old state file."""
    machine = cluster.machines[VICTIM]
    machine.files[STATE_FILE] = state_file(cluster.sim.now - 100.0, cluster.sim.now - 90.0)
    machine.kubelet.restart()
    run(cluster, 20.0)


BUCKETS = [(0, 10), (1000, 10), (2_000_000_000, 10)]
SCENES = {
    "power-cut": Scene(power_cut),
    "shutdown": Scene(shutdown, buckets=BUCKETS),
    "shutdown-with-volumes": Scene(every_shutdown, buckets=BUCKETS, claims=True),
    "busy-shutdown": Scene(busy_shutdown, buckets=BUCKETS),
    "signals": Scene(signals, buckets=BUCKETS),
    "two-of-six": Scene(outage(VICTIM, "ra-worker2"), {"workers": 6}),
    "partial": Scene(outage(*_ALL[1:]), {"workers": 3}),
    "whole": Scene(outage(*_ALL), {"workers": 3}),
    "swap": Scene(swap, tolerate=100),
    "untaint": Scene(untaint, tolerate=60),
    "controller-restart": Scene(controller_restart, tolerate=60),
    "orphans": Scene(orphans),
    "deletions": Scene(deletions),
    "dead-volumes": Scene(dead_volumes, tolerate=100_000, claims=True),
    "out-of-service": Scene(out_of_service, tolerate=100_000, claims=True),
    "daemons": Scene(daemons),
    "registered-again": Scene(registered_again),
    "scheduled": Scene(scheduled),
    "new-pods": Scene(new_pods),
    "stale": Scene(stale),
    "evictions": Scene(evictions),
    "no-logind": Scene(without_logind, logind=False),
}
