"""Helpers of the simulation tests: the recordings' workload, a history, shortcuts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chaos.lab.apiserver.store import Change
from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, NodeSpec, PriorityGrace

Object = dict[str, Any]
VICTIM = "ra-worker"
_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}
    for key in ("unreachable", "not-ready")
]


def workload(name: str, *, grace: int = 30, stops: int = 0, code: int = 0, ns: str = "demo", **spec: Any) -> Object:
    """Deployment, StatefulSet or DaemonSet. ``pod``: more fields of the pod's spec; ``spec``: of the workload's."""
    pod = {"containers": [{"name": "c", "image": "busybox:1.36"}], "terminationGracePeriodSeconds": grace}
    annotations = {"lab.nodefall.dev/stops-after": str(stops), "lab.nodefall.dev/exit-code": str(code)}
    template = {
        "metadata": {"labels": {"app": name}, "annotations": annotations | spec.pop("annotations", {})},
        "spec": pod | spec.pop("pod", {}),
    }
    body = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return {"metadata": {"name": name, "namespace": ns}, "spec": body}


def spread(name: str, when: str) -> list[Object]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": name}},
        }
    ]


def apply_recorded_workload(cluster: Cluster) -> None:
    """Create the workload of tests/recordings/README.md."""
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    for name, value in (("custom-class-a", 100000), ("custom-class-b", 10000), ("custom-class-c", 1000)):
        cluster.create_object("priorityclasses", {"metadata": {"name": name}, "value": value})
    web = {"topologySpreadConstraints": spread("web", "ScheduleAnyway")}
    cluster.create_object("deployments", workload("web", grace=15, stops=5, replicas=6, pod=web))
    db = {"topologySpreadConstraints": spread("db", "DoNotSchedule"), "tolerations": _TOLERATIONS}
    parallel = workload("db", grace=10, replicas=3, podManagementPolicy="Parallel", pod=db)
    cluster.create_object("statefulsets", parallel)
    for tier in "abc":
        name = f"tier-{tier}"
        pod = {
            "priorityClassName": f"custom-class-{tier}",
            "topologySpreadConstraints": spread(name, "ScheduleAnyway"),
        }
        cluster.create_object("deployments", workload(name, grace=60, stops=3, replicas=3, pod=pod))
    agent = {
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
    }
    cluster.create_object("daemonsets", workload("agent", grace=5, ns="kube-system", pod=agent))
    budget = {"minAvailable": 5, "selector": {"matchLabels": {"app": "web"}}}
    cluster.create_object("poddisruptionbudgets", {"metadata": {"name": "web", "namespace": "demo"}, "spec": budget})


def with_priorities(lab: LabSpec, buckets: list[tuple[int, int]]) -> LabSpec:
    """Set shutdownGracePeriodByPodPriority on every worker of a lab."""
    listed = [PriorityGrace(priority=p, shutdown_grace_period_seconds=s) for p, s in buckets]
    for item in lab.nodes[1:]:
        item.shutdown_grace_period = item.shutdown_grace_period_critical_pods = "0s"
        item.shutdown_grace_period_by_pod_priority = listed
    return lab


def spec(*, workers: int = 3, seed: int = 1, systemd: int = 252, **settings: Any) -> LabSpec:
    """LabSpec of one control plane and some workers."""
    names = ["ra-worker", *(f"ra-worker{number}" for number in range(2, workers + 1))]
    nodes = [NodeSpec(name=name, systemd=systemd) for name in names]
    return LabSpec(nodes=[NodeSpec(name="ra-control-plane", role="control-plane"), *nodes], seed=seed, **settings)


@dataclass
class History:
    """All changes of a cluster, with time."""

    changes: list[tuple[float, Change]] = field(default_factory=list)

    def lines(self) -> bytes:
        """The whole history as bytes."""
        rows = [[when, change.type, change.plural, change.object] for when, change in self.changes]
        return "\n".join(json.dumps(row, sort_keys=True) for row in rows).encode()

    def since(self, start: float, plural: str) -> list[tuple[float, str, Object]]:
        """Changes of one kind: (seconds after start, type, object)."""
        return [(t - start, c.type, c.object) for t, c in self.changes if c.plural == plural and t >= start]


def started(
    lab: LabSpec | None = None,
    settle: float = 40.0,
    recorded: bool = True,
    watch: Callable[[Cluster], object] = lambda _: None,
) -> tuple[Cluster, History]:
    """Running cluster with the recordings' workload; ``watch`` gets the cluster before its start."""
    cluster, history = Cluster(lab or spec()), History()
    watch(cluster)
    cluster.store.subscribe(lambda change: history.changes.append((cluster.sim.now, change)))
    cluster.start()
    run(cluster, 3.0)
    if recorded:
        apply_recorded_workload(cluster)
    run(cluster, settle)
    return cluster, history


def run(cluster: Cluster, seconds: float) -> None:
    cluster.sim.run_until(cluster.sim.now + seconds)


def ready(node: Object) -> Object:
    return next(item for item in node["status"]["conditions"] if item["type"] == "Ready")


def taints(node: Object) -> set[tuple[str, str]]:
    return {
        (item["key"].removeprefix("node.kubernetes.io/"), item["effect"]) for item in node["spec"].get("taints", [])
    }


def disruption(pod: Object) -> str:
    """Reason of DisruptionTarget if it is True, else empty."""
    for item in pod.get("status", {}).get("conditions") or []:
        if item["type"] == "DisruptionTarget" and item["status"] == "True":
            return str(item["reason"])
    return ""


def pods_on(cluster: Cluster, node: str) -> list[Object]:
    return [pod for pod in cluster.store.list("pods") if pod["spec"].get("nodeName") == node]


def node(cluster: Cluster, name: str = VICTIM) -> Object:
    found = cluster.store.get("nodes", "", name)
    assert found is not None
    return found


def events(cluster: Cluster, reason: str) -> list[Object]:
    return [event for event in cluster.store.list("events") if event["reason"] == reason]


_POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}
_RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "name": "some"}
_SUBJECTS = [{"kind": "ServiceAccount", "name": "some", "namespace": "demo"}]
# One object of each kind that the lab stores without simulating it, by plural; without metadata.
STORED_OBJECTS: dict[str, dict[str, Any]] = {
    "cronjobs": {"spec": {"schedule": "0 10 * * TUE", "jobTemplate": {"spec": {"template": {"spec": _POD}}}}},
    "networkpolicies": {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}},
    "roles": {"rules": _RULES},
    "clusterroles": {"rules": [*_RULES, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]},
    "rolebindings": {"roleRef": {**_ROLE, "kind": "Role"}, "subjects": _SUBJECTS},
    "clusterrolebindings": {"roleRef": {**_ROLE, "kind": "ClusterRole"}, "subjects": _SUBJECTS},
}
