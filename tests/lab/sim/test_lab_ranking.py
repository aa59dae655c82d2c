"""The scheduler's cached ranking against a fresh evaluation of every node."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.controllers.scheduler_plugins import feasible_nodes, order_of, score
from chaos.lab.controllers.scheduler_ranking import RankingCache
from chaos.lab.controllers.scheduler_snapshot import Snapshot
from chaos.lab.objects import named_nodes

Object = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
TAINTS = [{"key": "a", "effect": effect} for effect in ("NoSchedule", "PreferNoSchedule", "NoExecute")]
NODE_NAMES = ("n1", "n2", "n3", "n4")


def node(name: str, zone: str, taints: list[Object], cordoned: bool, cpu: str) -> Object:
    labels = {"kubernetes.io/hostname": name, **({ZONE: zone} if zone else {})}
    allocatable = {"cpu": cpu, "memory": "1Gi", "pods": "3"}
    spec = {"taints": taints, "unschedulable": cordoned}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": allocatable}}


def spread(key: str, when: str) -> Object:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": {"app": "x"}}}


def affinity(kind: str, key: str, app: str, weight: int) -> Object:
    """A required term without a weight."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    if not weight:
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]}}


def pod(
    name: str,
    app: str,
    cpu: str,
    tolerant: bool,
    zone: str,
    spreads: list[Object],
    between_pods: Object,
    deleting: bool,
) -> Object:
    metadata: Object = {"namespace": "demo", "name": name, "labels": {"app": app}}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: Object = {"containers": [{"resources": {"requests": {"cpu": cpu}}}], "topologySpreadConstraints": spreads}
    spec["affinity"] = between_pods
    spec["tolerations"] = [{"operator": "Exists"}] if tolerant else []
    if zone:
        spec["nodeSelector"] = {ZONE: zone}
    return {"metadata": metadata, "spec": spec}


SPREADS = st.builds(
    spread, st.sampled_from([ZONE, "kubernetes.io/hostname"]), st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])
)
AFFINITIES = st.builds(
    affinity,
    st.sampled_from(["podAffinity", "podAntiAffinity"]),
    st.sampled_from([ZONE, "kubernetes.io/hostname"]),
    st.sampled_from("xy"),
    st.sampled_from([0, 1, 50]),
)
NODES = st.builds(
    node,
    st.sampled_from(NODE_NAMES),
    st.sampled_from(["", "a", "b"]),
    st.lists(st.sampled_from(TAINTS), max_size=1),
    st.booleans(),
    st.sampled_from(["200m", "1"]),
)
PODS = st.builds(
    pod,
    st.sampled_from("abcdefgh"),
    st.sampled_from("xy"),
    st.sampled_from(["0", "150m"]),
    st.booleans(),
    st.sampled_from(["", "", "a"]),
    st.lists(SPREADS, max_size=2),
    st.just({}) | AFFINITIES,
    st.booleans(),
)
CHANGES = st.lists(st.one_of(NODES, PODS, st.sampled_from(["drop n1", "drop pod"])), max_size=25)


@given(st.lists(NODES, min_size=3, max_size=6), CHANGES)
def test_cached_ranking_equals_a_fresh_evaluation(nodes: list[Object], changes: list[Object | str]) -> None:
    snapshot, known = Snapshot(), dict[str, Object]()
    rankings = RankingCache(snapshot)
    placed = dict[tuple[str, str], Object]()
    for change in [*nodes, *changes]:
        if change == "drop n1":
            known.pop("n1", None)
            snapshot.drop_node("n1")
        elif isinstance(change, str):
            key = next(iter(placed), ("demo", "none"))
            placed.pop(key, None)
            snapshot.drop(key)
        elif "status" in change:
            known[change["metadata"]["name"]] = change
            snapshot.put_node(change)
        else:
            best = rankings.best(change)
            assert best == _evaluate(change, known, placed)
            if best:
                bound = {**change, "spec": {**change["spec"], "nodeName": best[0]}}
                placed["demo", change["metadata"]["name"]] = bound
                snapshot.put(bound)


def _evaluate(new: Object, nodes: dict[str, Object], placed: dict[tuple[str, str], Object]) -> list[str]:
    fresh = Snapshot()
    for item in nodes.values():
        fresh.put_node(item)
    for other in placed.values():
        fresh.put(other)
    found = feasible_nodes(new, fresh.nodes.values(), fresh)[0]
    scores = {item["metadata"]["name"]: score(new, item, fresh) for item in found}
    order = order_of(scores.values())
    return sorted(name for name, value in scores.items() if order(value) == min(map(order, scores.values())))


def test_nodes_named_by_an_affinity() -> None:
    def requiring(*terms: Object) -> Object:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        return {"spec": {"affinity": {"nodeAffinity": required}}}

    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    other = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2", "n3"]}]}
    not_there = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}
    by_label = {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}
    assert named_nodes(requiring(by_name)) == {"n1"}
    assert named_nodes(requiring(by_name, other)) == {"n1", "n2", "n3"}
    assert named_nodes(requiring(by_name, by_label)) is None
    assert named_nodes(requiring(not_there)) is None
    assert named_nodes({"spec": {}}) is None
