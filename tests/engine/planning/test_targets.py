"""Target nodes are selected within the blast radius, or the plan is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.cluster_view import ClusterView, zone
from chaos.core.errors import Refused
from chaos.core.inventory import Inventory
from chaos.core.kube import (
    Condition,
    Metadata,
    Node,
    NodeMetadata,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    Taint,
    is_ready,
)
from chaos.core.kube.meta import Annotations
from chaos.core.target_spec import TargetSpec
from chaos.engine.planning.targets import SPREAD, candidates, existing_pods, select_nodes, select_workload_nodes

CONTROL_LABEL = "node-role.kubernetes.io/control-plane"
CONTROL = {CONTROL_LABEL: ""}


def requirement(operator: str, *values: str) -> dict[str, Any]:
    return {"key": "kubernetes.io/hostname", "operator": operator} | ({"values": list(values)} if values else {})


def node(name: str, ready: str = "True", **labels: str) -> Node:
    plain = {key.replace("_", "-"): value for key, value in labels.items()}
    return Node(NodeMetadata(name=name, labels=plain), None, NodeStatus(conditions=[Condition("Ready", ready)]))


def cluster(workers: int = 3, not_ready: tuple[str, ...] = ()) -> ClusterView:
    nodes = [Node(NodeMetadata(name="cp", labels=CONTROL), None, NodeStatus(conditions=[Condition("Ready", "True")]))]
    for index in range(workers):
        name = f"w{index}"
        zone = {"topology.kubernetes.io/zone": "ab"[index % 2]}
        status = NodeStatus(conditions=[Condition("Ready", "Unknown" if name in not_ready else "True")])
        nodes.append(Node(NodeMetadata(name=name, labels={"kubernetes.io/hostname": name, **zone}), None, status))
    return ClusterView("uid", {n.metadata.name: n for n in nodes})


def inventory(**extra: Any) -> Inventory:
    base = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "t"},
        "cluster": {"kubeconfig": "k"},
    }
    return Inventory.model_validate({**base, **extra})


def target(**fields: Any) -> TargetSpec:
    return TargetSpec.model_validate(fields)


def with_etcd(name: str) -> ClusterView:
    """With a node that runs etcd only, as k3s and RKE2 label it."""
    view = cluster()
    return ClusterView("uid", {**view.nodes, name: node(name, **{"node-role.kubernetes.io/etcd": "true"})})


def with_static_pod(name: str, on: str) -> ClusterView:
    metadata = Metadata(name=name, namespace="kube-system", annotations=Annotations(mirror="x"))
    return ClusterView("uid", cluster().nodes, (Pod(metadata, PodSpec(node_name=on)),))


LAST = {"minReadyNodes": 0}
SELECTED: list[tuple[dict[str, Any], dict[str, Any], set[str]]] = [
    ({"nodes": ["w1"]}, {}, {"w1"}),
    ({"matchLabels": {"kubernetes.io/hostname": "w2"}}, {}, {"w2"}),
    ({"zone": "b"}, {}, {"w1"}),
    ({"role": "worker", "count": "50%"}, {}, {"w0", "w1", "w2"}),  # one of them: floor of 1.5
    ({"role": "worker", "count": "1%"}, {}, {"w0", "w1", "w2"}),  # at least one
    ({"role": "control-plane"}, {"protected": {"roles": []}}, {"cp"}),
    ({"nodes": ["w1"]}, {"limits": {"maxNodes": 1, "minReadyNodes": 2}}, {"w1"}),
    ({"role": "worker", "except": ["w0", "w2"]}, {}, {"w1"}),
    ({"matchExpressions": [requirement("In", "w2", "w9")]}, {}, {"w2"}),
    ({"role": "worker", "matchExpressions": [requirement("NotIn", "w0", "w1")]}, {}, {"w2"}),
    ({"matchExpressions": [requirement("Exists")]}, {}, {"w0", "w1", "w2"}),
    ({"matchExpressions": [requirement("DoesNotExist")]}, {"protected": {"roles": []}}, {"cp"}),
    ({"matchExpressions": [requirement("NotIn", "w0", "w1", "w2")]}, {"protected": {"roles": []}}, {"cp"}),
    ({"matchLabels": {CONTROL_LABEL: None}}, {"protected": {"roles": []}}, {"cp"}),
    ({"matchLabels": {CONTROL_LABEL: ""}}, {"protected": {"roles": []}}, {"cp"}),
]
REFUSED: list[tuple[dict[str, Any], dict[str, Any], ClusterView, str]] = [
    ({"role": "control-plane"}, {}, cluster(), "only 0 match"),
    ({"nodes": ["cp"]}, {}, cluster(), "which the inventory protects"),
    ({"nodes": ["w1"]}, {"protected": {"nodes": ["w1"]}}, cluster(), "which the inventory protects"),
    ({"nodes": ["w9"]}, {}, cluster(), "which does not exist in the cluster"),
    ({"role": "worker", "count": 2}, {}, cluster(), "limits.maxNodes is 1"),
    ({"role": "worker"}, {"limits": {"minReadyNodes": 3}}, cluster(), "2 would stay Ready, limits.minReadyNodes is 3"),
    ({"role": "worker"}, {}, cluster(1), "too few Ready workers: 0 would stay Ready, limits.minReadyNodes is 1"),
    ({"role": "control-plane"}, {"protected": {"roles": []}, "limits": LAST}, cluster(0), "none would stay Ready"),
    ({"nodes": ["e0"]}, {}, with_etcd("e0"), "which the inventory protects"),
    ({"nodes": ["w0"]}, {}, with_static_pod("etcd-w0", "w0"), "which the inventory protects"),
    ({"nodes": ["w0"]}, {}, with_static_pod("kube-apiserver-w0", "w0"), "which the inventory protects"),
    ({"role": "worker", "count": 4}, {"limits": {"maxNodes": 9}}, with_etcd("e0"), "only 3 match"),
    ({"role": "worker"}, {"protected": {"roles": []}}, cluster(0), "only 0 match"),
    ({"nodes": ["w0"]}, {}, cluster(3, ("w0",)), "1 of them are not Ready"),
    ({"os": "windows"}, {}, cluster(), "0 of 4 nodes match it, as none has operating system windows (found: linux)"),
    ({"zone": "z"}, {}, cluster(), "as none has zone z ("),
    ({"matchLabels": {"pool": "gpu"}}, {}, cluster(), "as none has label pool gpu (no node has any)"),
    ({"matchLabels": {"kubernetes.io/hostname": "x"}}, {}, cluster(), "as none has label kubernetes.io/hostname x"),
    ({"matchExpressions": [requirement("In", "x")]}, {}, cluster(), ": In x"),
    ({"role": "worker", "except": ["w0", "w1", "w2"]}, {}, cluster(), "only 0 match"),
    ({"role": "worker", "except": ["w9"]}, {}, cluster(), "except names w9, which the cluster does not have"),
    ({"matchLabels": {"kubernetes.io/hostname": ""}}, {}, cluster(), "only 0 match"),
    ({"role": "worker", "count": 4}, {"limits": {"maxNodes": 9}}, cluster(), "needs 4 node(s), but only 3 match"),
]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"nodes": ["w0"], "except": ["w1"]}, "give either nodes or except"),
        ({"matchExpressions": [requirement("In")]}, "the operator In needs values"),
        ({"matchExpressions": [requirement("Exists", "w0")]}, "the operator Exists takes no values"),
        ({"matchExpressions": [requirement("Gt", "1")]}, "operator"),
    ],
)
def test_selectors_that_mean_nothing(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        target(**spec)


@pytest.mark.parametrize(("spec", "extra", "allowed"), SELECTED)
def test_selected(spec: dict[str, Any], extra: dict[str, Any], allowed: set[str]) -> None:
    (nodes,) = select_nodes({"victim": target(**spec)}, cluster(), inventory(**extra), seed=7).values()
    assert len(nodes) == 1
    assert set(nodes) <= allowed


@pytest.mark.parametrize("seed", range(8))
def test_the_own_node_is_selected_by_name_only(seed: int) -> None:
    """By its name it is what was asked for, and preflight refuses it."""
    workers = target(role="worker")
    (nodes,) = select_nodes({"victim": workers}, cluster(), inventory(), seed=seed, own_node="w1").values()
    assert set(nodes) < {"w0", "w2"}
    named = {"victim": target(nodes=["w1"])}
    assert select_nodes(named, cluster(), inventory(), seed=seed, own_node="w1") == {"victim": ("w1",)}
    assert candidates(workers, cluster(), inventory(), "w1") == ["w0", "w2"]
    assert candidates(target(nodes=["w1"]), cluster(), inventory(), "w1") == ["w1"]


def test_a_cluster_without_another_node_is_refused() -> None:
    with pytest.raises(Refused, match="needs 1 node"):
        select_nodes({"victim": target(role="worker")}, cluster(workers=1), inventory(), seed=1, own_node="w0")


@pytest.mark.parametrize(("spec", "extra", "view", "why"), REFUSED)
def test_refused(spec: dict[str, Any], extra: dict[str, Any], view: ClusterView, why: str) -> None:
    with pytest.raises(Refused) as refused:
        select_nodes({"victim": target(**spec)}, view, inventory(**extra), seed=7)
    assert why in refused.value.message


def test_the_last_ready_node_is_never_selected() -> None:
    view = ClusterView("uid", {"w0": node("w0"), "w1": node("w1", "False")})
    with pytest.raises(Refused, match="0 would stay Ready"):
        select_nodes({"victim": target(nodes=["w0"])}, view, inventory(), seed=1)


@given(
    seed=st.integers(),
    workers=st.integers(2, 12),
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    down=st.sets(st.integers(0, 11)),
)
def test_every_selection_is_safe_and_reproducible(seed: int, workers: int, counts: list[int], down: set[int]) -> None:
    view = cluster(workers, tuple(f"w{i}" for i in down))
    specs = {f"t{i}": target(role="worker", count=count) for i, count in enumerate(counts)}
    allowed = inventory(limits={"maxNodes": 4, "minReadyNodes": 2})
    try:
        selected = select_nodes(specs, view, allowed, seed)
    except Refused:
        return
    nodes = [name for names in selected.values() for name in names]
    assert len(nodes) == len(set(nodes)) <= 4
    assert "cp" not in nodes
    assert all(is_ready(view.nodes[name]) for name in nodes)
    assert len(set(view.ready_nodes()) - set(nodes)) >= 2
    assert select_nodes(specs, view, allowed, seed) == selected


TAINTED = NodeSpec(taints=[Taint(key="k", effect="NoSchedule")])
PREFERRED = NodeSpec(taints=[Taint(key="k", effect="PreferNoSchedule")])


def with_spec(workers: int, **specs: NodeSpec) -> ClusterView:
    """Workers of which some have another spec."""
    view = cluster(workers)
    changed = {name: msgspec.structs.replace(view.nodes[name], spec=spec) for name, spec in specs.items()}
    return ClusterView("uid", {**view.nodes, **changed})


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        (NodeSpec(unschedulable=True), {"w1"}),
        (TAINTED, {"w1"}),
        (PREFERRED, {"w0", "w1"}),
    ],
)
def test_a_target_that_runs_the_workload_takes_pods(spec: NodeSpec, allowed: set[str]) -> None:
    view, workload = with_spec(2, w0=spec), {"victim": target(role="worker", runs="workload")}
    found = {select_nodes(workload, view, inventory(), seed)["victim"][0] for seed in range(20)}
    assert found == allowed
    assert {select_nodes({"v": target(role="worker")}, view, inventory(), s)["v"][0] for s in range(20)} == {"w0", "w1"}


@given(seed=st.integers(), workers=st.integers(2, 300), count=st.integers(1, 5), down=st.sets(st.integers(0, 9)))
def test_the_workload_is_confined_to_the_targets_and_others(
    seed: int, workers: int, count: int, down: set[int]
) -> None:
    view = cluster(workers, tuple(f"w{i}" for i in down))
    specs = {"victim": target(role="worker", count=count, runs="workload")}
    allowed = inventory(limits={"maxNodes": 9}, protected={"nodes": ["w1"]})
    try:
        selected = select_nodes(specs, view, allowed, seed)
    except Refused:
        return
    nodes = select_workload_nodes(specs, selected, view, allowed, seed)
    usable = {name for name in view.ready_workers() if name != "w1"}
    if nodes:
        assert set(selected["victim"]) <= set(nodes) <= usable
        assert len(nodes) == max(SPREAD, count)
    else:
        assert len(usable) <= max(SPREAD, count)
    assert nodes == select_workload_nodes(specs, selected, view, allowed, seed)


def test_a_workload_is_not_confined_unless_a_target_runs_it() -> None:
    specs = {"victim": target(role="worker")}
    selected = select_nodes(specs, cluster(9), inventory(), 1)
    assert select_workload_nodes(specs, selected, cluster(9), inventory(), 1) == ()


@pytest.mark.parametrize("seed", range(5))
def test_a_workload_runs_where_targets_ask_for_it_and_then_on_other_targets(seed: int) -> None:
    """Of 30 nodes that all go down, three take its pods: those of the two targets that ask for it, and one more."""
    specs = {
        "others": target(role="worker", runs="workload"),
        "last": target(role="worker", runs="workload"),
        "most": target(role="worker", count="100%"),
    }
    view, allowed = cluster(30), inventory(limits={"maxNodes": 30, "minReadyNodes": 0})
    selected = select_nodes(specs, view, allowed, seed)
    nodes = select_workload_nodes(specs, selected, view, allowed, seed)
    assert len(nodes) == SPREAD
    assert {*selected["others"], *selected["last"]} < set(nodes)


def test_a_workload_takes_a_target_that_does_not_ask_before_a_node_that_is_none() -> None:
    specs = {"victim": target(role="worker", runs="workload"), "other": target(role="worker")}
    selected = select_nodes(specs, cluster(9), inventory(limits={"maxNodes": 9}), 1)
    nodes = select_workload_nodes(specs, selected, cluster(9), inventory(), 1)
    assert len(nodes) == SPREAD
    assert {*selected["victim"], *selected["other"]} < set(nodes)


def shop(*pods: tuple[str, str, dict[str, Any]]) -> ClusterView:
    """Pods of namespace shop: name, node and changed fields of the object."""
    made = []
    for name, on, changed in pods:
        metadata = {"name": name, "namespace": "shop", "labels": {"app": name.partition("-")[0]}, **changed}
        phase = metadata.pop("phase", "Running")
        made.append(msgspec.convert({"metadata": metadata, "spec": {"nodeName": on}, "status": {"phase": phase}}, Pod))
    return ClusterView("uid", cluster(4).nodes, tuple(made))


def owned(kind: str, name: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": True}
    return {"ownerReferences": [owner]}


HASHED = {"labels": {"app": "web", "pod-template-hash": "5d"}} | owned("ReplicaSet", "web-5d")
SHOP = shop(
    ("db-0", "w1", owned("StatefulSet", "db")),
    ("db-1", "w2", owned("StatefulSet", "db") | {"labels": {"app": "db", "role": "leader"}}),
    ("web-5d-a", "w1", HASHED),
    ("web-5d-b", "w3", HASHED),
    ("job-1", "w0", {"phase": "Succeeded"}),
    ("old-1", "w0", {"deletionTimestamp": "2026-11-28T00:00:00Z"}),
)
LEADER = {"matchExpressions": [{"key": "role", "operator": "In", "values": ["leader"]}]}


@pytest.mark.parametrize(
    ("runs", "nodes"),
    [
        ({}, {"w1", "w2", "w3"}),
        ({"matchLabels": {"app": "db"}}, {"w1", "w2"}),
        ({"owner": "StatefulSet/db"}, {"w1", "w2"}),
        ({"owner": "Deployment/web"}, {"w1", "w3"}),
        (LEADER, {"w2"}),
        (LEADER | {"owner": "StatefulSet/db"}, {"w2"}),
    ],
)
def test_targets_run_pods_that_exist_already(runs: dict[str, Any], nodes: set[str]) -> None:
    specs = {"victim": target(role="worker", runs={"namespace": "shop", **runs})}
    found = {select_nodes(specs, SHOP, inventory(), seed)["victim"][0] for seed in range(30)}
    assert found == nodes
    pods = {pod for node in found for pod in existing_pods(specs["victim"], node, SHOP)}
    assert all(pod.startswith("shop/") for pod in pods)
    assert len(pods) >= len(nodes)
    assert select_workload_nodes(specs, {"victim": ("w1",)}, SHOP, inventory(), 1) == ()


@pytest.mark.parametrize(
    "runs",
    [
        {"namespace": "shop", "matchLabels": {"app": "job"}},
        {"namespace": "shop", "matchLabels": {"app": "old"}},
        {"namespace": "other"},
        {"namespace": "shop", "owner": "StatefulSet/d"},
        {"namespace": "shop", "matchLabels": {"app": "db"}, **LEADER, "owner": "Deployment/db"},
    ],
)
def test_without_such_a_pod_nothing_is_selected(runs: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=r"needs 1 node.*there are no pods of .*on any node"):
        select_nodes({"victim": target(runs=runs)}, SHOP, inventory(), 1)


@given(seed=st.integers(), count=st.integers(1, 4))
def test_a_zone_has_a_second_node_only_once_each_has_one(seed: int, count: int) -> None:
    view, limits = cluster(6), inventory(limits={"maxNodes": 6})
    selected = select_nodes({"victim": target(role="worker", count=count, spread="zone")}, view, limits, seed)
    zones = Counter(zone(view.nodes[node]) for node in selected["victim"])
    assert sum(zones.values()) == count
    assert max(zones.values()) - min(zones["a"], zones["b"]) <= 1


@pytest.mark.parametrize(
    "runs", ["pods", {"owner": "db"}, {"owner": "statefulset/db"}, {"namespace": ""}, {"labels": {}}]
)
def test_pods_that_mean_nothing(runs: Any) -> None:
    with pytest.raises(ValueError, match="runs"):
        target(runs=runs)
