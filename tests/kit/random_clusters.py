"""Random clusters, workloads and operations of the property test: plain values, so that failures shrink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.deletion import EvictionRefused
from chaos.lab.apiserver.registry import ForbiddenError
from chaos.lab.apiserver.store import ConflictError, NotFoundError, clone
from chaos.lab.cluster import Cluster
from chaos.lab.node.logind import LogindError
from chaos.lab.node.machine import Machine
from chaos.lab.objects import name_of, namespace_of
from chaos.lab.spec import ControllerSpec, LabSpec, NodeSpec, PriorityGrace, StaticPod
from tests.kit.invariants_world import OUT_OF_SERVICE
from tests.kit.simkit import Object, workload

WAITS = (0.0, 0.01, 0.5, 3.0, 12.0, 60.0)
_REFUSED = (NotFoundError, ConflictError, InvalidError, ForbiddenError, EvictionRefused, LogindError)
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_GRACES = (("30s", "10s"), ("5s", "2s"), ("3s", "0s"), ("0s", "0s"))
_BUCKETS = ([(0, 10), (1000, 5)], [(0, 2), (10, 3), (2_000_000_000, 4)], [(1000, 0), (0, 6)])


@dataclass(frozen=True)
class Operation:
    """Operation ``kind`` on the ``who``-th object, in the variant ``what``, and a wait of ``wait`` seconds."""

    kind: str
    who: int
    what: int
    wait: float


@st.composite
def labs(draw: st.DrawFn) -> LabSpec:
    zones = draw(st.sampled_from([[""], ["a", "b"], ["a", "b", "c"]]))
    nodes = [_node(draw, index, zones) for index in range(draw(st.integers(1, 8)))]
    controllers = ControllerSpec(
        node_monitor_grace_period=draw(st.sampled_from([50.0, 40.0, 20.0])),
        node_monitor_period=draw(st.sampled_from([5.0, 2.0])),
        node_eviction_rate=draw(st.sampled_from([0.1, 1.0])),
        unhealthy_zone_threshold=draw(st.sampled_from([0.55, 0.3])),
        large_cluster_size_threshold=draw(st.sampled_from([50, 2])),
        default_not_ready_toleration_seconds=draw(st.sampled_from([300, 20, 0])),
        default_unreachable_toleration_seconds=draw(st.sampled_from([300, 20, 0])),
        disable_force_detach_on_timeout=draw(st.booleans()),
    )
    lab = LabSpec(nodes=nodes, controllers=controllers, seed=draw(st.integers(0, 1000)))
    lab.inhibitor_lost_after_cancel = draw(st.sampled_from(["never", "always", "seeded"]))
    return lab


def _node(draw: st.DrawFn, index: int, zones: list[str]) -> NodeSpec:
    total, critical = draw(st.sampled_from(_GRACES))
    node = NodeSpec(
        name=f"n{index}",
        role="control-plane" if index == 0 and draw(st.booleans()) else "worker",
        zone=zones[index % len(zones)],
        systemd=draw(st.sampled_from([252, 257])),
        logind=draw(st.sampled_from([True, True, True, False])),
        shutdown_grace_period=total,
        shutdown_grace_period_critical_pods=critical,
        panic_timeout=draw(st.sampled_from([0, 10])),
        static_pods=[StaticPod(name="proxy", stops_after=1.0)] if draw(st.booleans()) else [],
    )
    if total == "0s" and draw(st.booleans()):
        buckets = draw(st.sampled_from(_BUCKETS))
        node.shutdown_grace_period_by_pod_priority = [
            PriorityGrace(priority=priority, shutdown_grace_period_seconds=seconds) for priority, seconds in buckets
        ]
    return node


@st.composite
def workloads(draw: st.DrawFn) -> tuple[str, Object]:
    """Plural and object, without a name."""
    plural = draw(st.sampled_from(["deployments", "statefulsets", "daemonsets"]))
    pod: Object = {"priorityClassName": draw(st.sampled_from(["", "low", "high", "system-node-critical"]))}
    # Other pods that tolerate everything are bound to a node that shuts down, rejected, and replaced, without end, as
    # in Kubernetes: RS manageReplicas has no back-off for failed pods. Only kube-controller-manager's
    # --kube-api-qps, 20 requests per second, limits that; the lab has no such limit and too many pods.
    pod["tolerations"] = draw(st.sampled_from(_TOLERATIONS if plural == "daemonsets" else _FINITE))
    more: dict[str, Any] = {} if plural == "daemonsets" else {"replicas": draw(st.integers(0, 5))}
    if plural == "statefulsets":
        more["podManagementPolicy"] = draw(st.sampled_from(["Parallel", "OrderedReady"]))
        if draw(st.booleans()):
            more["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": _CLAIM}]
    if plural == "deployments" and draw(st.booleans()):
        more["strategy"] = {"type": "Recreate"}
    grace, stops, code = (
        draw(st.sampled_from([30, 5, 1])),
        draw(st.sampled_from([0, 3, 40])),
        draw(st.sampled_from([0, 3])),
    )
    made = workload("", grace=grace, stops=stops, code=code, pod=pod, **more)
    if draw(st.booleans()):
        made["spec"]["template"]["metadata"]["annotations"]["lab.nodefall.dev/ignores-sigterm"] = "true"
    return plural, made


_TOLERATIONS: list[list[Object]] = [
    [],
    [{"operator": "Exists"}],
    [{"operator": "Exists", "effect": "NoSchedule"}],
    [{"key": "example.com/x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}],
]
_FINITE = [_TOLERATIONS[0], _TOLERATIONS[3]]
_BUDGETS: list[Object] = [{"minAvailable": 2}, {"maxUnavailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": 0}]


def set_up(cluster: Cluster, made: list[tuple[str, Object]], budgets: list[int]) -> None:
    """Create namespace, priority classes, workloads, and budgets for the first of these."""
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    for name, value in (("low", 10), ("high", 10000)):
        cluster.create_object("priorityclasses", {"metadata": {"name": name}, "value": value})
    for index, (plural, template) in enumerate(made):
        obj: Object = clone(template)
        obj["metadata"]["name"] = f"w{index}"
        obj["spec"]["selector"]["matchLabels"]["app"] = f"w{index}"
        obj["spec"]["template"]["metadata"]["labels"]["app"] = f"w{index}"
        cluster.create_object(plural, obj)
    for index, budget in enumerate(budgets[: len(made)]):
        spec = {**_BUDGETS[budget], "selector": {"matchLabels": {"app": f"w{index}"}}}
        spec["unhealthyPodEvictionPolicy"] = ("IfHealthyBudget", "AlwaysAllow")[index % 2]
        cluster.create_object(
            "poddisruptionbudgets", {"metadata": {"name": f"b{index}", "namespace": "demo"}, "spec": spec}
        )


def do(cluster: Cluster, operation: Operation) -> None:
    """Run an operation of an administrator, a client or the environment; errors of API and logind are ignored."""
    try:
        if operation.kind in _ON_MACHINES:
            machine = list(cluster.machines.values())[operation.who % len(cluster.machines)]
            if machine.is_reachable or machine.state == "off":
                _ON_MACHINES[operation.kind](machine, operation.what)
        else:
            _ON_API[operation.kind](cluster, operation.who, operation.what)
    except _REFUSED:
        return


def _schedule(machine: Machine, what: int) -> None:
    machine.logind.schedule(("reboot", "poweroff")[what % 2], machine.logind._sim.now + 5.0 * what)


def _cut(machine: Machine, what: int) -> None:
    machine.partition(*[((["ipv4"], ["in"]), (["ipv6"],), ())[what % 3]][0])


def _kubelet(machine: Machine, what: int) -> None:
    """Start, stop, restart, kill, freeze or thaw the kubelet."""
    kubelet = machine.kubelet
    if machine.state == "off":
        return
    calls = [kubelet.start, kubelet.stop, kubelet.restart]
    if kubelet.is_running:
        calls += [kubelet.kill, kubelet.freeze, kubelet.thaw]
    calls[what % len(calls)]()


def _power(machine: Machine, what: int) -> None:
    (machine.power_off, machine.power_on, machine.reset, machine.crash)[what % 4]()


def _logind(machine: Machine, what: int) -> None:
    logind = machine.logind
    (logind.power_off, logind.reboot, logind.cancel_scheduled, logind.restart, logind.restart_bus)[what % 5]()


def _runtime(machine: Machine, what: int) -> None:
    (machine.runtime.stop_service, machine.runtime.start_service)[what % 2]()


def _pressure(machine: Machine, what: int) -> None:
    (machine.pressure.add, machine.pressure.discard)[what % 2](("memory", "disk", "pid")[what % 3])


_ON_MACHINES: dict[str, Callable[[Machine, int], object]] = {
    "power": _power,
    "logind": _logind,
    "schedule": _schedule,
    "signal": lambda machine, what: machine.logind.emit_prepare_for_shutdown(what % 2 == 0),
    "kubelet": _kubelet,
    "cut": _cut,
    "heal": lambda machine, _: machine.heal(),
    "runtime": _runtime,
    "pressure": _pressure,
}


def _nth(cluster: Cluster, plural: str, who: int) -> Object:
    """Copy of the ``who``-th object. Raises NotFoundError if there is none."""
    found = list(cluster.store.list(plural, "" if plural == "nodes" else "demo"))
    if not found:
        raise NotFoundError(plural, "any")
    copy: Object = clone(found[who % len(found)])
    return copy


def _delete(plural: str) -> Callable[[Cluster, int, int], object]:
    def delete(cluster: Cluster, who: int, what: int) -> None:
        obj = _nth(cluster, plural, who)
        grace = (None, 0, 2, None)[what % 4] if plural == "pods" else None
        cluster.delete_object(plural, namespace_of(obj), name_of(obj), grace)

    return delete


def _evict(cluster: Cluster, who: int, what: int) -> None:
    pod = _nth(cluster, "pods", who)
    cluster.evict_pod("demo", name_of(pod), ({}, {"gracePeriodSeconds": 1})[what % 2])


def _taint(cluster: Cluster, who: int, what: int) -> None:
    node = _nth(cluster, "nodes", who)
    key, effect = (("example.com/x", "NoExecute"), ("example.com/x", "NoSchedule"), (OUT_OF_SERVICE, "NoExecute"))[
        what % 3
    ]
    taints = [item for item in node["spec"].get("taints") or [] if (item["key"], item["effect"]) != (key, effect)]
    node["spec"]["taints"] = [*taints, {"key": key, "effect": effect}]
    cluster.update_object("nodes", node)


def _untaint(cluster: Cluster, who: int, what: int) -> None:
    """Remove a client's taints, or also those of the control plane, which are restored."""
    node = _nth(cluster, "nodes", who)
    keys = ("example.com/x", OUT_OF_SERVICE)
    node["spec"]["taints"] = [item for item in node["spec"].get("taints") or [] if what % 4 and item["key"] not in keys]
    cluster.update_object("nodes", node)


def _cordon(cluster: Cluster, who: int, what: int) -> None:
    node = _nth(cluster, "nodes", who)
    node["spec"]["unschedulable"] = what % 2 == 0
    cluster.update_object("nodes", node)


def _make_node(cluster: Cluster, who: int, _what: int) -> None:
    cluster.create_object("nodes", {"metadata": {"name": list(cluster.machines)[who % len(cluster.machines)]}})


def _scale(cluster: Cluster, who: int, what: int) -> None:
    plural = ("deployments", "statefulsets")[who % 2]
    obj = _nth(cluster, plural, who // 2)
    obj["spec"]["replicas"] = what % 6
    cluster.update_object(plural, obj)


def _roll(cluster: Cluster, who: int, what: int) -> None:
    obj = _nth(cluster, "deployments", who)
    obj["spec"]["template"]["metadata"]["annotations"]["example.com/version"] = str(what)
    cluster.update_object("deployments", obj)


def _update_pod(cluster: Cluster, who: int, what: int) -> None:
    """Add a toleration, change an unselected or selected label, add or remove a finalizer."""
    pod = _nth(cluster, "pods", who)
    metadata = pod["metadata"]
    if what % 5 == 0:
        pod["spec"].setdefault("tolerations", []).append(_TOLERATIONS[3][0])
    elif what % 5 == 1:
        metadata.setdefault("labels", {})["example.com/seen"] = "yes"
    elif what % 5 == 2:
        metadata.setdefault("labels", {})["app"] = "lost"
    else:
        metadata["finalizers"] = ["example.com/keep"] if what % 5 == 3 else []
    cluster.update_object("pods", pod)


def _make_claim(cluster: Cluster, who: int, _what: int) -> None:
    """Create a pod without owner, with a claim, on any node."""
    metadata = {"name": f"own{who}", "namespace": "demo"}
    cluster.create_object("persistentvolumeclaims", {"metadata": dict(metadata), "spec": _CLAIM})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": f"own{who}"}}]
    spec = {"containers": [{"name": "c", "image": "busybox:1.36"}], "volumes": volumes}
    cluster.create_object("pods", {"metadata": {**metadata, "labels": {"app": "own"}}, "spec": spec})


_ON_API: dict[str, Callable[[Cluster, int, int], object]] = {
    "delete-pod": _delete("pods"),
    "delete-node": _delete("nodes"),
    "delete-deployment": _delete("deployments"),
    "delete-statefulset": _delete("statefulsets"),
    "delete-budget": _delete("poddisruptionbudgets"),
    "delete-claim": _delete("persistentvolumeclaims"),
    "evict": _evict,
    "taint": _taint,
    "untaint": _untaint,
    "cordon": _cordon,
    "make-node": _make_node,
    "scale": _scale,
    "roll": _roll,
    "update-pod": _update_pod,
    "make-claim": _make_claim,
    "restart-controllers": lambda cluster, *_: cluster.controllers.restart(),
}


def operations() -> st.SearchStrategy[list[Operation]]:
    """Lists of about twenty operations, joined from several because hypothesis draws short ones."""
    kinds = st.sampled_from([*_ON_MACHINES, *_ON_API])
    operation = st.builds(
        Operation, kind=kinds, who=st.integers(0, 9), what=st.integers(0, 5), wait=st.sampled_from(WAITS)
    )
    few = st.lists(operation, max_size=10)
    return st.tuples(few, few, few, few).map(lambda parts: [item for part in parts for item in part])
