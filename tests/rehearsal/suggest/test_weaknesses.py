"""Every weakness is found where it is, with its numbers, and not where the cluster differs in that alone."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.cluster.snapshot.document import Contents
from chaos.rehearsal.suggest.findings import weaknesses_of
from chaos.rehearsal.suggest.model import Model
from chaos.rehearsal.suggest.weakness import TITLES, Weakness, WeaknessKind
from tests.kit.small_contents import budget, node, of, small, workload

Part = dict[str, list[dict[str, Any]]]
W1, W2, W3 = "w1", "w2", "w3"
NODES = [node(W1, "a"), node(W2, "b"), node(W3, "c")]
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
DEDICATED = {"key": "team", "value": "ml", "effect": "NoSchedule"}


def web(*on: str, **spec: Any) -> Part:
    return workload("Deployment", "web", on or (W1, W2, W3), **spec)


def db(*on: str, **spec: Any) -> Part:
    return workload("StatefulSet", "db", on, **spec)


def others(*on: str) -> Part:
    """As web, in another namespace."""
    return workload("Deployment", "web", on, namespace="other")


def cluster(*parts: Part, nodes: Any = NODES, config: Any = None) -> Contents:
    return small(*parts, nodes=nodes, config=config)


def claim(name: str, volume: str) -> Part:
    return of("persistentvolumeclaims", name, spec={"volumeName": volume})


def volume(name: str, **spec: Any) -> Part:
    return {"persistentvolumes": [{"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], **spec}}]}


def scaler(least: int, most: int, current: int) -> Part:
    target = {"kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most}
    return of("horizontalpodautoscalers", "web", spec=spec, status={"currentReplicas": current})


def webhook(policy: str) -> Part:
    hook = {"failurePolicy": policy, "clientConfig": {"service": {"namespace": "shop", "name": "web"}}}
    return of("validatingwebhookconfigurations", "v", "", webhooks=[hook])


BUDGET = budget("web", 3, 2, maxUnavailable=1)
SERVICE = of("services", "web", spec={"selector": {"app": "web"}})
BALANCER = of("services", "web", spec={"selector": {"app": "web"}, "type": "LoadBalancer"})
DATA = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
APART_FROM_OTHERS = {
    "podAntiAffinity": {
        kind: [{**term, "namespaces": ["other"]} for term in terms] for kind, terms in APART["podAntiAffinity"].items()
    }
}
IS_W1 = {"key": "kubernetes.io/hostname", "operator": "In", "values": [W1]}
ON_W1 = {"required": {"nodeSelectorTerms": [{"matchExpressions": [IS_W1]}]}}
DNS = workload("Deployment", "coredns", (W1, W1), namespace="kube-system")
DNS["deployments"][0]["metadata"]["labels"] = {"k8s-app": "kube-dns"}
K, TIGHT = WeaknessKind, [node(W1), node(W2, cpu="1")]
SHORT = {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"}
BY_PRIORITY = {
    "shutdownGracePeriodByPodPriority": [
        {"priority": 0, "shutdownGracePeriodSeconds": 20},
        {"priority": 1000, "shutdownGracePeriodSeconds": 90},
    ]
}

# Kind, a cluster that has it with its numbers, and one that has not.
CASES: list[tuple[WeaknessKind, Contents, dict[str, int], Contents]] = [
    (K.SINGLE_REPLICA, cluster(web(W1)), {"replicas": 1}, cluster(web(W1, W2))),
    (K.BARE_POD, cluster(of("pods", "lone", spec={"containers": []})), {"pods": 1}, cluster(web())),
    (K.ONE_NODE, cluster(web(W1, W1)), {"replicas": 2, "on the node": 2}, cluster(web(W1, W2))),
    (K.ONE_ZONE, cluster(web(W1, W2), nodes=[node(W1, "a"), node(W2, "a"), node(W3, "b")]), {"replicas": 2, "zones": 2},
     cluster(web(W1, W2))),
    (K.ONE_ZONE, cluster(web(W1, W2), nodes=[node(W1, "a"), node(W2, "a"), node(W3, "b")]), {"replicas": 2, "zones": 2},
     cluster(web(W1, W2), nodes=[node(W1, "a"), node(W2, "a")])),
    (K.KEY_SERVICE, cluster(DNS), {"replicas": 2}, cluster(workload("Deployment", "coredns", (W1, W1)))),
    (K.KEY_SERVICE, cluster(web(W1), SERVICE, webhook("Fail")), {"replicas": 1},
     cluster(web(W1), SERVICE, webhook("Ignore"))),
    (K.KEY_SERVICE, cluster(web(W1), BALANCER), {"replicas": 1}, cluster(web(W1, W2), BALANCER)),
    (K.STATEFUL_ON_NODE, cluster(db(W1, W2)), {"replicas": 2, "on the node": 1}, cluster(db(W1, W2, W3))),
    (K.LOCAL_VOLUME, cluster(db(W1, W2, W3, **DATA), claim("data", "pv"), volume("pv", nodeAffinity=ON_W1)),
     {"volumes": 3}, cluster(db(W1, W2, W3, **DATA), claim("data", "pv"), volume("pv", csi={}))),
    (K.ATTACHED_VOLUME, cluster(web(W1, **DATA), claim("data", "pv"), volume("pv", csi={})), {"volumes": 1},
     cluster(web(W1, **DATA), claim("data", "pv"), volume("pv", accessModes=["ReadWriteMany"]))),
    (K.NO_ROOM, cluster(web(W1, requests={"cpu": "2"}), nodes=TIGHT), {"pods": 1, "nodes": 1, "others": 1},
     cluster(web(W1, requests={"cpu": "500m"}), nodes=TIGHT)),
    (K.NO_ROOM, cluster(web(W1, requests={"cpu": "3"}), workload("Deployment", "api", (W2, W2), requests={"cpu": "1"}),
                        nodes=[node(W1, cpu="6"), node(W2)]), {"pods": 1, "nodes": 1, "others": 1},
     cluster(web(W1, requests={"cpu": "2"}), workload("Deployment", "api", (W2, W2), requests={"cpu": "1"}),
             nodes=[node(W1), node(W2)])),
    (K.NO_ROOM, cluster(web(nodeSelector={"kubernetes.io/hostname": W1})), {"pods": 1, "nodes": 1, "others": 2},
     cluster(web())),
    (K.NO_ROOM, cluster(web(affinity=APART)), {"pods": 1, "nodes": 3, "others": 2},
     cluster(web(W1, W2, affinity=APART))),
    (K.NO_ROOM, cluster(web(W1, affinity=APART_FROM_OTHERS), others(W2, W3)), {"pods": 1, "nodes": 1, "others": 2},
     cluster(web(W1, affinity=APART_FROM_OTHERS), others(W2))),
    (K.NO_ROOM, cluster(web(W1), nodes=[node(W1), node(W2, taints=[DEDICATED])]), {"pods": 1, "nodes": 1, "others": 1},
     cluster(web(W1, tolerations=[{"key": "team", "operator": "Exists"}]),
             nodes=[node(W1), node(W2, taints=[DEDICATED])])),
    (K.STAYS_FOREVER, cluster(web(tolerations=[UNREACHABLE])), {"replicas": 3},
     cluster(web(tolerations=[{**UNREACHABLE, "tolerationSeconds": 30}]))),
    (K.STAYS_FOREVER, cluster(web(tolerations=[{"operator": "Exists"}])), {"replicas": 3},
     cluster(web(tolerations=[{**UNREACHABLE, "operator": "Equal", "value": "another"}]))),
    (K.STAYS_LONG, cluster(web(tolerations=[{**UNREACHABLE, "tolerationSeconds": 600}])),
     {"replicas": 3, "seconds": 600}, cluster(web())),
    (K.BUDGET_BLOCKS, cluster(web(), budget("web", 3, 3)), {"pods": 3, "demanded": 3}, cluster(web(), BUDGET)),
    (K.BUDGET_OVERLAP, cluster(web(), BUDGET, budget("web", 3, 2, "also")), {"pods": 3, "budgets": 2},
     cluster(web(), BUDGET, budget("api", 0, 0, "also"))),
    (K.BUDGET_IDLE, cluster(web(), budget("other", 0, 0)), {"pods": 0}, cluster(web(), BUDGET)),
    (K.BUDGET_IDLE, cluster(web(), budget("web", 3, 0)), {"pods": 3}, cluster(web(), budget("web", 3, 1))),
    (K.NO_BUDGET, cluster(web()), {"replicas": 3}, cluster(web(), BUDGET)),
    (K.BUDGET_ABOVE_AUTOSCALER, cluster(web(), scaler(2, 5, 3), budget("web", 3, 2, minAvailable=2)),
     {"minimum": 2, "maximum": 5, "replicas": 3, "demanded": 2},
     cluster(web(), scaler(3, 5, 3), budget("web", 3, 2, minAvailable=2))),
    (K.AUTOSCALER_ONE, cluster(web(), scaler(1, 5, 3)), {"minimum": 1, "maximum": 5, "replicas": 3},
     cluster(web(), scaler(2, 5, 3))),
    (K.AUTOSCALER_FIXED, cluster(web(), scaler(3, 3, 3)), {"minimum": 3, "maximum": 3, "replicas": 3},
     cluster(web(), scaler(3, 4, 3))),
    (K.AUTOSCALER_FULL, cluster(web(), scaler(2, 3, 3)), {"minimum": 2, "maximum": 3, "replicas": 3},
     cluster(web(), scaler(2, 4, 3))),
    (K.SHUTDOWN_OFF, cluster(config={"shutdownGracePeriod": "0s"}), {"nodes": 3, "workers": 3}, cluster(config=SHORT)),
    (K.CRITICAL_SECONDS, cluster(web(priority=2_000_000_000), config=SHORT), {"workloads": 1, "grace": 30, "given": 10},
     cluster(web(priority=2_000_000_000, terminationGracePeriodSeconds=10), config=SHORT)),
    (K.GRACE_CUT, cluster(web(), config=SHORT), {"workloads": 1, "grace": 30, "given": 20}, cluster(web())),
    (K.GRACE_CUT, cluster(web(), config=BY_PRIORITY), {"workloads": 1, "grace": 30, "given": 20},
     cluster(web(priority=1000), config=BY_PRIORITY)),
    (K.DAEMON_MISSING, cluster(workload("DaemonSet", "agent", (W1,)), nodes=[node(W1), node(W2, taints=[DEDICATED])]),
     {"nodes": 1, "workers": 2},
     cluster(workload("DaemonSet", "agent", (W1,), nodeSelector={"kubernetes.io/hostname": W1}),
             nodes=[node(W1), node(W2, taints=[DEDICATED])])),
    (K.INTERFERES, cluster(web(image="registry.k8s.io/descheduler/descheduler:v0.33")), {"objects": 1}, cluster(web())),
]  # fmt: skip


def found(contents: Contents, kind: WeaknessKind, namespace: str = "") -> list[Weakness]:
    return [each for each in weaknesses_of(Model(contents, namespace)) if each.kind is kind]


@pytest.mark.parametrize(
    ("kind", "weak", "numbers", "sound"), CASES, ids=lambda value: str(getattr(value, "value", ""))
)
def test_a_weakness(kind: WeaknessKind, weak: Contents, numbers: dict[str, int], sound: Contents) -> None:
    (weakness,) = found(weak, kind)
    assert weakness.numbers == numbers
    assert weakness.title == TITLES[kind]
    assert weakness.sentence.endswith(".")
    assert weakness.objects
    assert weakness.helps
    assert found(sound, kind) == []


def test_every_kind_has_a_case() -> None:
    assert {kind for kind, *_ in CASES} == set(WeaknessKind)


def test_a_sound_cluster_has_none() -> None:
    sound = cluster(web(), BUDGET, db(W1, W2, W3), budget("db", 3, 2), workload("DaemonSet", "agent", (W1, W2, W3)))
    assert weaknesses_of(Model(sound)) == ()


def test_other_namespaces_are_left_out() -> None:
    other = workload("Deployment", "api", (W1,), namespace="other")
    contents = cluster(web(W1), other)
    assert [each.subject for each in found(contents, K.SINGLE_REPLICA, "other")] == ["Deployment other/api"]


def test_no_room_counts_all_pods_of_the_node_together() -> None:
    """Each of them would fit, but not all."""
    contents = cluster(web(W1, W1, W1, requests={"cpu": "1"}), nodes=[node(W1), node(W2, cpu="2")])
    (weakness,) = found(contents, K.NO_ROOM)
    assert weakness.numbers["pods"] == 1
    assert "too little cpu, memory or pods left (1)" in weakness.sentence
