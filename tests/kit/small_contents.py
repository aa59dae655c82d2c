"""Small contents of snapshots: a few nodes, workloads with pods on given nodes, and what else a test needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chaos.cluster.snapshot.document import Contents, Object
from chaos.core.labels import ZONE_LABEL

_PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}


def node(name: str, zone: str = "", *, cpu: str = "4", taints: Sequence[Object] = ()) -> Object:
    """A Node that is Ready."""
    labels = {"kubernetes.io/hostname": name, **({ZONE_LABEL: zone} if zone else {})}
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def small(*parts: dict[str, list[Object]], nodes: Sequence[Object] = (), config: Object | None = None) -> Contents:
    """Contents of ``parts``. ``config``: of every kubelet."""
    objects: dict[str, list[Object]] = {"nodes": list(nodes)}
    for part in parts:
        for plural, found in part.items():
            objects.setdefault(plural, []).extend(found)
    names = [each["metadata"]["name"] for each in nodes]
    shutdown = {"shutdownGracePeriod": "60s", "shutdownGracePeriodCriticalPods": "30s"}
    return Contents({}, objects, {name: dict(shutdown if config is None else config) for name in names}, {})


def workload(
    kind: str, name: str, on: Sequence[str], replicas: int | None = None, namespace: str = "shop", **spec: Any
) -> dict[str, list[Object]]:
    """A workload with a pod on each node of ``on``. ``spec``: of its pods; ``image`` is that of their container."""
    uid, labels = f"uid-{name}", {"app": name}
    container = {"name": "c", "image": spec.pop("image", "app:1"), "resources": {"requests": spec.pop("requests", {})}}
    body = {"containers": [container], **spec}
    owner = {"kind": kind, "name": name, "uid": uid, "controller": True}
    pods = [
        {
            "metadata": {"namespace": namespace, "name": f"{name}-{n}", "labels": labels, "ownerReferences": [owner]},
            "spec": {**body, "nodeName": where},
            "status": {"phase": "Running"},
        }
        for n, where in enumerate(on)
    ]
    obj: Object = {
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": body}},
    }
    if kind != "DaemonSet":
        obj["spec"]["replicas"] = len(on) if replicas is None else replicas
    return {_PLURALS[kind]: [obj], "pods": pods}


def budget(app: str, healthy: int, desired: int, name: str = "", **spec: Any) -> dict[str, list[Object]]:
    """A budget of the pods of a workload, all of which are ``healthy``; ``desired``: how many it demands."""
    selector = {"matchLabels": {"app": app}}
    status = {"expectedPods": healthy, "currentHealthy": healthy, "desiredHealthy": desired}
    status["disruptionsAllowed"] = max(0, healthy - desired)
    metadata = {"namespace": "shop", "name": name or app}
    return {"poddisruptionbudgets": [{"metadata": metadata, "spec": {"selector": selector, **spec}, "status": status}]}


def of(plural: str, name: str, namespace: str = "shop", **parts: Any) -> dict[str, list[Object]]:
    """One object."""
    return {plural: [{"metadata": {"name": name, "namespace": namespace}, **parts}]}
