"""Recordings of lab runs in the format of tests/recordings, for more scenarios than were recorded on real clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chaos.lab.apiserver.store import Change, clone
from chaos.lab.cluster import Cluster
from chaos.lab.objects import name_of, namespace_of
from chaos.lab.spec import LabSpec, NodeSpec
from tests.kit import simkit

Lines = list[dict[str, Any]]
Do = Callable[[Cluster], object]
Step = tuple[float, str, str, dict[str, Any], Do]
KINDS = (
    "nodes", "pods", "leases", "events", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs",
    "priorityclasses", "poddisruptionbudgets", "persistentvolumes", "persistentvolumeclaims", "volumeattachments",
)  # fmt: skip
BEHAVIOUR = {
    "demo/web": {"stopsAfter": 5, "exit": 0},
    "demo/tier-*": {"stopsAfter": 3, "exit": 0},
    "demo/db": {"stopsAfter": 0, "exit": 0},
    "kube-system/agent": {"stopsAfter": 0, "exit": 0},
    "extra/stubborn": {"ignoresSIGTERM": True, "exit": 137},
    "extra/exits-three": {"stopsAfter": 0, "exit": 3},
    "extra/prestop": {"preStop": 4, "stopsAfter": 0, "exit": 0},
    "extra/*": {"stopsAfter": 0, "exit": 0},
    "vol/*": {"stopsAfter": 0, "exit": 0},
}
_STOPS, _LOOP = "lab.nodefall.dev/stops-after", 0.5  # containers of the recordings check for signals once a second


def spec(seed: int, systemd: int = 252, lost: str = "always") -> LabSpec:
    names = ("ra-worker", "ra-worker2", "ra-worker3")
    workers = [NodeSpec(name=name, systemd=systemd, boot_seconds=2.6) for name in names]
    control_plane = NodeSpec(name="ra-control-plane", role="control-plane", boot_seconds=2.6)
    lab_spec = LabSpec(nodes=[control_plane, *workers], seed=seed)
    lab_spec.inhibitor_lost_after_cancel = "always" if lost == "always" else "never"
    return lab_spec


def apply_extra(cluster: Cluster) -> None:
    """Create namespace ``extra`` of the recordings' README."""
    cluster.create_object("namespaces", {"metadata": {"name": "extra"}})
    stubborn = simkit.workload("stubborn", ns="extra", grace=120, replicas=3)
    stubborn["spec"]["template"]["metadata"]["annotations"] = {"lab.nodefall.dev/ignores-sigterm": "true"}
    cluster.create_object("deployments", stubborn)
    cluster.create_object("deployments", simkit.workload("exits-three", ns="extra", code=3, replicas=3))
    hook = simkit.workload("prestop", ns="extra", replicas=3)
    hook["spec"]["template"]["spec"]["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 4}}}
    cluster.create_object("deployments", hook)
    for name, seconds in (("none", 0), ("five", 5), ("thirty", 30), ("forever", None)):
        cluster.create_object("pods", bare(f"tol-{name}", seconds))


def apply_volumes(cluster: Cluster) -> None:
    """Create namespace ``vol``: a StatefulSet and a Deployment, with a claim for each pod."""
    cluster.create_object("namespaces", {"metadata": {"name": "vol"}})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    tolerations = [{"key": k, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20} for k in keys]
    pod = {"tolerations": tolerations, "topologySpreadConstraints": simkit.spread("disk", "ScheduleAnyway")}
    templates = [{"metadata": {"name": "data"}, "spec": claim}]
    disk = simkit.workload("disk", grace=10, ns="vol", replicas=3, pod=pod, volumeClaimTemplates=templates)
    disk["spec"]["podManagementPolicy"] = "Parallel"
    cluster.create_object("statefulsets", disk)
    cluster.create_object("persistentvolumeclaims", {"metadata": {"name": "one", "namespace": "vol"}, "spec": claim})
    volumes = [{"name": "one", "persistentVolumeClaim": {"claimName": "one"}}]
    one = simkit.workload("one", ns="vol", replicas=1, pod={"tolerations": tolerations, "volumes": volumes})
    cluster.create_object("deployments", one)


def bare(name: str, seconds: int | None) -> dict[str, Any]:
    """A bare pod on the victim. ``seconds`` of toleration of example.com/bad: 0 is none, None is for ever."""
    toleration: dict[str, Any] = {"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}
    if seconds:
        toleration |= {"tolerationSeconds": seconds}
    pod = {"containers": [{"name": "c", "image": "busybox:1.36"}], "terminationGracePeriodSeconds": 10}
    pod |= {"tolerations": [] if seconds == 0 else [toleration]}
    pod |= {"nodeSelector": {"kubernetes.io/hostname": simkit.VICTIM}}
    notes = {_STOPS: str(_LOOP)}
    return {
        "metadata": {"name": name, "namespace": "extra", "labels": {"app": name}, "annotations": notes},
        "spec": pod,
    }


def record(
    lab_spec: LabSpec,
    steps: list[Step],
    after: float,
    *,
    extra: bool = False,
    late: bool = False,
    volumes: bool = False,
) -> Lines:
    """Record steps: delay in seconds, type, node, params, function. ``late``: apply the workload after the start."""
    cluster = Cluster(lab_spec)
    cluster.start()
    simkit.run(cluster, 3.0)
    if not late:
        _apply(cluster, extra=extra, volumes=volumes)
        simkit.run(cluster, 60.0)
    lines = _first(cluster, lab_spec)
    cluster.store.subscribe(lambda change: _add(lines, cluster, change))
    simkit.run(cluster, 4.0)
    if late:
        _apply(cluster, extra=extra, volumes=volumes)
        simkit.run(cluster, 20.0)
    for number, (delay, action, node, params, do) in enumerate(steps):
        simkit.run(cluster, delay)
        if node:
            locks = [lock for lock in cluster.machines[node].logind.inhibitors() if lock["who"] == "kubelet"]
            lines.append(
                {"t": cluster.sim.now, "kind": "host", "type": "inhibitor-locks", "node": node, "object": locks}
            )
        if action:
            body = {"step": f"step-{number}", "phase": "begin", "params": params}
            lines.append({"t": cluster.sim.now, "kind": "action", "type": action, "node": node, "object": body})
        do(cluster)
    simkit.run(cluster, after)
    end = {"metadata": {"resourceVersion": "0"}}
    return [*lines, {"t": cluster.sim.now, "kind": "pods", "type": "BOOKMARK", "object": end}]


def _apply(cluster: Cluster, *, extra: bool, volumes: bool) -> None:
    simkit.apply_recorded_workload(cluster)
    if volumes:
        apply_volumes(cluster)
    if extra:
        apply_extra(cluster)
    for kind in ("deployments", "statefulsets", "daemonsets"):
        for owner in list(cluster.store.list(kind)):
            cluster.store.patch(kind, namespace_of(owner), name_of(owner), _loop)


def _loop(owner: dict[str, Any]) -> None:
    notes = owner["spec"]["template"]["metadata"].setdefault("annotations", {})
    notes[_STOPS] = str(float(notes.get(_STOPS, 0)) + _LOOP)


def _first(cluster: Cluster, lab_spec: LabSpec) -> Lines:
    now = cluster.sim.now
    meta = {
        "format": 1, "kubernetes": lab_spec.kubernetes, "systemd": str(lab_spec.nodes[1].systemd),
        "behaviour": BEHAVIOUR,
        "controllerManager": {"nodeMonitorPeriod": "5s", "nodeMonitorGracePeriod": "50s"},
    }  # fmt: skip
    lines: Lines = [{"t": now, "kind": "meta", "type": "recording", "object": meta}]
    for name, machine in cluster.machines.items():
        lines.append({"t": now, "kind": "host", "type": "configz", "node": name, "object": machine.kubelet.configz()})
    for kind in KINDS:
        lines += [{"t": now, "kind": kind, "type": "LIST", "object": _plain(obj)} for obj in cluster.store.list(kind)]
    return lines


def _add(lines: Lines, cluster: Cluster, change: Change) -> None:
    if change.plural in KINDS:
        obj = _plain(change.object)
        lines.append({"t": cluster.sim.now, "kind": change.plural, "type": change.type, "object": obj})


def _plain(obj: dict[str, Any]) -> dict[str, Any]:
    """Copy without the lab's annotations; the meta entry describes the containers instead."""
    new: dict[str, Any] = clone(obj)
    template = new.get("spec", {}).get("template") or {}
    for metadata in (new["metadata"], template.get("metadata") or {}):
        notes = metadata.get("annotations") or {}
        for key in [key for key in notes if key.startswith("lab.nodefall.dev/")]:
            del notes[key]
    return new


def edit(
    plural: str, namespace: str, name: str, change: Callable[[dict[str, Any]], object]
) -> Callable[[Cluster], object]:
    """Edit an object, as ``kubectl edit``."""

    def do(cluster: Cluster) -> None:
        found = cluster.store.get(plural, namespace, name)
        assert found is not None
        new = clone(found)
        change(new)
        cluster.update_object(plural, new)

    return do


def pod_of(cluster: Cluster, owner: str, node: str = simkit.VICTIM) -> dict[str, Any]:
    """A running pod of an owner, by the prefix of its name."""
    return next(pod for pod in simkit.pods_on(cluster, node) if name_of(pod).startswith(owner))
