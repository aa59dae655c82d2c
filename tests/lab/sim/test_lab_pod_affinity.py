"""Affinity between pods: the cases of kube-scheduler's own tests, and pods that labs place.

pkg/scheduler/framework/plugins/interpodaffinity: filtering_test.go and scoring_test.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.cluster import Cluster
from chaos.lab.controllers import scheduler_affinity
from chaos.lab.controllers.scheduler_plugins import refusal, score
from chaos.lab.controllers.scheduler_snapshot import Snapshot
from chaos.lab.objects import condition, name_of, node_of
from chaos.lab.spec import LabSpec, NodeSpec

Object = dict[str, Any]
NO, FAR = scheduler_affinity.AFFINITY, scheduler_affinity.ANTI_AFFINITY
HELD = scheduler_affinity.EXISTING_ANTI_AFFINITY
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
SCAN, S1, FOO, BAR, BOTH = (
    {"service": "securityscan"},
    {"security": "S1"},
    {"foo": ""},
    {"bar": ""},
    {"foo": "", "bar": ""},
)
R1_Z11 = {"n1": {"region": "r1", "zone": "z11"}}
CHINA_INDIA = {"n1": {"region": "China"}, "n2": {"region": "China", "az": "az1"}, "n3": {"region": "India"}}
ZONES = {"n1": {"region": "r1", "zone": "z1"}, "n2": {"region": "r1", "zone": "z2"}}
TWO_ZONES = {"n1": {"zone": "1"}, "n2": {"zone": "2"}}
ONE_ZONE = {"n1": {"region": "r1", "zone": "z1"}, "n2": {"region": "r1", "zone": "z1"}}
NAMESPACES = {
    "subteam1.team1": {"team": "team1"},
    "subteam2.team1": {"team": "team1"},
    "subteam1.team2": {"team": "team2"},
}
TEAM1 = {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["team1"]}]}}


def term(key: str, topology: str, operator: str = "In", values: tuple[str, ...] = (), **more: Any) -> Object:
    values = values or (("securityscan", "value2") if operator in ("In", "NotIn") else ())
    expression = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {"labelSelector": {"matchExpressions": [expression]}, "topologyKey": topology, **more}


def exists(key: str, topology: str) -> Object:
    return term(key, topology, "Exists")


def pod(
    labels: dict[str, str] | None = None,
    node: str = "",
    near: tuple[Object, ...] = (),
    far: tuple[Object, ...] = (),
    namespace: str = "",
) -> Object:
    affinity = {"podAffinity": {REQUIRED: list(near)}, "podAntiAffinity": {REQUIRED: list(far)}}
    spec: Object = {"containers": [], "nodeName": node, "affinity": affinity}
    return {"metadata": {"namespace": namespace, "name": "p", "labels": labels or {}}, "spec": spec}


def snapshot_of(pods: list[Object], nodes: dict[str, dict[str, str]]) -> Snapshot:
    snapshot = Snapshot()
    for name, labels in nodes.items():
        allocatable = {"cpu": "1", "memory": "1Gi", "pods": "9"}
        node = {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"allocatable": allocatable}}
        snapshot.put_node(node)
    for namespace, labels in NAMESPACES.items():
        snapshot.terms.put_namespace(namespace, labels)
    for index, item in enumerate(pods):
        snapshot.put({**item, "metadata": {**item["metadata"], "name": f"p{index}"}})
    return snapshot


NEAR, FAR_NODE, FAR_ZONE = term("service", "region"), term("service", "node"), term("service", "zone")
ABC, DEF, XYZ = exists("abc", "zone"), exists("def", "zone"), {"xyz": ""}
FIRST = (term("foo", "zone", values=("bar",)), term("service", "zone", values=("securityscan",)))
FIRST_LABELS = {"foo": "bar", "service": "securityscan"}
FAR_ABC = term("foo", "region", values=("abc",))


@pytest.mark.parametrize(
    ("new", "pods", "nodes", "expected"),
    [
        # TestRequiredAffinitySingleNode
        (pod(), [], R1_Z11, [""]),
        (pod(S1, near=(NEAR,)), [pod(SCAN, "n1")], R1_Z11, [""]),
        (pod(S1, near=(term("service", "region", "NotIn", ("x", "y")),)), [pod(SCAN, "n1")], R1_Z11, [""]),
        (pod(S1, near=({**NEAR, "namespaces": ["DiffNameSpace"]},)), [pod(SCAN, "n1", namespace="ns")], R1_Z11, [NO]),
        (pod(SCAN, near=(term("service", "region", values=("antivirusscan",)),)), [pod(SCAN, "n1")], R1_Z11, [NO]),
        (pod(S1, near=(exists("service", "region"), NEAR)), [pod(SCAN, "n1")], R1_Z11, [""]),
        (
            pod(S1, near=(exists("service", "region"), term("service", "region", values=("securityscan2",)))),
            [pod(SCAN, "n1")], R1_Z11, [NO],
        ),
        (pod(S1, near=(NEAR,), far=(term("service", "node", values=("x",)),)), [pod(SCAN, "n1")], R1_Z11, [""]),
        (pod(S1, near=(NEAR,), far=(FAR_ZONE,)), [pod(SCAN, "n1")], R1_Z11, [FAR]),
        (pod(SCAN, near=(NEAR,), far=(FAR_NODE,)), [pod(SCAN, "n1", far=(FAR_ZONE,))], R1_Z11, [HELD]),
        (pod(SCAN, near=(term("service", "region", "NotIn"),)), [pod(SCAN, "n2")], R1_Z11, [NO]),
        (pod(SCAN), [pod(SCAN, "n1", far=(FAR_ZONE,))], R1_Z11, [HELD]),
        (pod(SCAN), [pod(SCAN, "n1", far=(term("service", "zone", "NotIn"),))], R1_Z11, [""]),
        (
            pod(SCAN, far=(exists("service", "region"), exists("security", "region"))),
            [pod(S1, "n1", far=(exists("security", "zone"),))], R1_Z11, [FAR],
        ),
        (
            pod(S1, far=(exists("security", "zone"),)),
            [pod(SCAN, "n1", far=(exists("service", "zone"), exists("security", "zone")))], R1_Z11,
            [HELD],
        ),
        (pod({"abc": ""} | XYZ, far=(ABC, DEF)), [pod({"def": ""} | XYZ, "n1", far=(ABC, DEF))], R1_Z11, [FAR]),
        (pod(S1, near=({**NEAR, **TEAM1},)), [pod(SCAN, "n1", namespace="subteam1.team1")], R1_Z11, [""]),
        (pod(S1, near=({**NEAR, **TEAM1},)), [pod(SCAN, "n1", namespace="subteam1.team2")], R1_Z11, [NO]),
        (
            pod(S1, far=({**FAR_ZONE, **TEAM1},), namespace="subteam1.team1"),
            [pod(SCAN, "n1", namespace="subteam2.team1")], R1_Z11, [FAR],
        ),
        (
            pod(S1, far=({**FAR_ZONE, "namespaceSelector": {}},), namespace="subteam1.team1"),
            [pod(SCAN, "n1", namespace="subteam2.team1")], R1_Z11, [FAR],
        ),
        (
            pod(S1, far=({**FAR_ZONE, **TEAM1},), namespace="subteam1.team1"),
            [pod(SCAN, "n1", namespace="subteam1.team2")], R1_Z11, [""],
        ),
        # TestRequiredAffinityMultipleNodes
        (pod(near=(term("foo", "region", values=("bar",)),)), [pod({"foo": "bar"}, "n1")], CHINA_INDIA, ["", "", NO]),
        (pod(FIRST_LABELS, near=FIRST), [pod({"foo": "bar"}, "n1")], TWO_ZONES, [""] * 2),
        (pod(FIRST_LABELS, near=FIRST), [pod({"foo": "bar"}, "n1")], {"n1": {"z": "1"}, "n2": {"z": "2"}}, [NO] * 2),
        (pod(far=(FAR_ABC,)), [pod({"foo": "abc"}, "n1")], ZONES, [FAR] * 2),
        (
            pod(far=(FAR_ABC, term("service", "zone"))), [pod({"foo": "abc", **SCAN}, "n1")], ZONES, [FAR] * 2,
        ),
        (pod(far=(FAR_ABC,)), [pod({"foo": "abc"}, "n1")], CHINA_INDIA, [FAR, FAR, ""]),
        (
            pod({"foo": "123"}, far=(term("foo", "region", values=("bar",)),), namespace="NS1"),
            [
                pod({"foo": "bar"}, "n1", namespace="NS1"),
                pod(node="n3", far=(term("foo", "region", values=("123",)),), namespace="NS2"),
            ],
            CHINA_INDIA, [FAR, FAR, ""],
        ),
        (pod(FOO), [pod(node="n1", far=(exists("foo", "invalid"),))], ONE_ZONE, ["", ""]),
        (pod(far=(exists("foo", "invalid"),)), [pod(FOO, "n1")], ONE_ZONE, ["", ""]),
        (
            pod(BOTH), [pod(node="n1", far=(exists("foo", "zone"),)), pod(node="n1", far=(exists("bar", "region"),))],
            ZONES, [HELD] * 2,
        ),
        (
            pod(far=(exists("foo", "zone"), exists("bar", "region"))), [pod(FOO, "n1"), pod(BAR, "n2")],
            ZONES, [FAR] * 2,
        ),
        (pod(BOTH), [pod(node="n1", far=(exists("foo", "x"), exists("bar", "zone")))], ZONES, [HELD, ""]),
        (pod(far=(exists("foo", "x"), exists("bar", "zone"))), [pod(BOTH, "n1")], ZONES, [FAR, ""]),
        (
            pod(BOTH),
            [
                pod(node="n1", far=(exists("foo", "zone"), exists("labelA", "zone"))),
                pod(node="n2", far=(exists("bar", "zone"), exists("labelB", "zone"))),
            ],
            ZONES | {"n3": {"region": "r1", "zone": "z3"}}, [HELD, HELD, ""],
        ),
        (pod(near=(exists("foo", "region"), exists("bar", "zone"))), [pod(BOTH, "n1")], ONE_ZONE, ["", ""]),
        (
            pod(near=(exists("foo", "region"), exists("bar", "zone"))), [pod(FOO, "n1"), pod(BAR, "n2")],
            ZONES, [NO] * 2,
        ),
    ],
)  # fmt: skip
def test_required_terms(new: Object, pods: list[Object], nodes: dict[str, dict[str, str]], expected: list[str]) -> None:
    snapshot = snapshot_of(pods, nodes)
    assert [refusal(new, node, snapshot) for node in snapshot.nodes.values()] == expected
    for index, item in enumerate(pods):
        snapshot.drop((item["metadata"]["namespace"], f"p{index}"))
    empty = snapshot_of([], nodes)
    assert [refusal(new, n, snapshot) for n in snapshot.nodes.values()] == [
        refusal(new, n, empty) for n in empty.nodes.values()
    ], "nothing is left of pods that are gone"


def preferring(labels: dict[str, str], node: str = "", **terms: tuple[int, Object]) -> Object:
    """``near``, ``far``: weight and term."""
    body = pod(labels, node)
    for name, kind in (("near", "podAffinity"), ("far", "podAntiAffinity")):
        if name in terms:
            weight, item = terms[name]
            body["spec"]["affinity"][kind] = {PREFERRED: [{"weight": weight, "podAffinityTerm": item}]}
    return body


BY_FOO, BY_SECURITY = exists("foo", "region"), exists("security", "region")


@pytest.mark.parametrize(
    ("new", "pods", "expected"),
    [
        (pod(S1), [pod(SCAN, "n1")], [0, 0, 0]),
        (preferring(S1, near=(5, BY_FOO)), [pod(FOO, "n1"), pod(FOO, "n2"), pod(SCAN, "n3")], [10, 10, 0]),
        (preferring(S1, far=(5, BY_FOO)), [pod(FOO, "n1"), pod(FOO, "n3")], [-5, -5, -5]),
        (pod(S1), [preferring(FOO, "n1", near=(5, BY_SECURITY))], [5, 5, 0]),  # symmetry
        (pod(S1), [preferring(FOO, "n3", far=(7, BY_SECURITY))], [0, 0, -7]),
        (pod(S1), [pod(FOO, "n1", near=(BY_SECURITY,))], [1, 1, 0]),  # hardPodAffinityWeight
        (pod(SCAN), [pod(FOO, "n1", near=(BY_SECURITY,)), preferring(FOO, "n2", near=(5, BY_SECURITY))], [0, 0, 0]),
    ],
)
def test_preferred_terms(new: Object, pods: list[Object], expected: list[int]) -> None:
    snapshot = snapshot_of(pods, CHINA_INDIA)
    assert [score(new, node, snapshot).affinity for node in snapshot.nodes.values()] == expected


def cluster_of(zones: str) -> Cluster:
    nodes = [NodeSpec(name=f"w{index}", zone=zone) for index, zone in enumerate(zones)]
    cluster = Cluster(LabSpec(nodes=[NodeSpec(name="cp", role="control-plane"), *nodes]))
    cluster.start()
    cluster.warm_up()
    return cluster


def create(cluster: Cluster, name: str, affinity: Object, **labels: str) -> None:
    spec = {"containers": [{"name": "c"}], "affinity": affinity}
    cluster.create_object("pods", {"metadata": {"name": name, "labels": labels}, "spec": spec})


def places(cluster: Cluster) -> dict[str, str]:
    cluster.sim.run_until(cluster.sim.now + 5)
    return {name_of(item): node_of(item) for item in cluster.store.list("pods", "default")}


def test_a_pod_waits_for_the_pod_that_it_must_be_near() -> None:
    cluster = cluster_of("aab")
    near_db = {"podAffinity": {REQUIRED: [term("app", "kubernetes.io/hostname", values=("db",))]}}
    create(cluster, "web", near_db, app="web")
    assert places(cluster) == {"web": ""}
    message = (condition(cluster.store.list("pods", "default")[0], "PodScheduled") or {})["message"]
    assert "3 node(s) didn't match pod affinity rules" in message
    create(cluster, "db", {}, app="db")
    placed = places(cluster)
    assert placed["web"] == placed["db"] != ""


def test_of_three_pods_that_must_be_apart_two_fit_two_zones() -> None:
    cluster = cluster_of("aab")
    apart = {"podAntiAffinity": {REQUIRED: [term("app", "topology.kubernetes.io/zone", values=("db",))]}}
    for name in ("db-0", "db-1", "db-2"):
        create(cluster, name, apart, app="db")
    assert sorted(bool(node) for node in places(cluster).values()) == [False, True, True]
    bound = next(name for name, node in places(cluster).items() if node == "w2")
    cluster.delete_object("pods", "default", bound, 0)
    assert max(places(cluster).values()) == "w2", "the third one takes the place of the one that was deleted"


def test_preferred_terms_outweigh_the_number_of_pods() -> None:
    cluster = cluster_of("ab")
    near = term("app", "kubernetes.io/hostname", values=("web",))
    create(cluster, "web-0", {}, app="web")
    first = places(cluster)["web-0"]
    for name in ("web-1", "web-2"):
        rules = {PREFERRED: [{"weight": 1, "podAffinityTerm": near}]}
        create(cluster, name, {"podAffinity": rules}, app="web")
    assert set(places(cluster).values()) == {first}


@pytest.mark.parametrize(("keys", "node_is_shared"), [("matchLabelKeys", False), ("mismatchLabelKeys", True)])
def test_keys_of_labels_are_merged_into_the_selector(keys: str, node_is_shared: bool) -> None:
    """Pods with the same track, and those of another track: apart from the former, or from the latter."""
    cluster = cluster_of("a")
    rule = {**exists("app", "kubernetes.io/hostname"), keys: ["track", "unset"]}
    for name in ("p1", "p2"):
        create(cluster, name, {"podAntiAffinity": {REQUIRED: [rule]}}, app="web", track="blue")
    assert all(places(cluster).values()) == node_is_shared
    stored = cluster.store.list("pods", "default")[0]["spec"]["affinity"]["podAntiAffinity"][REQUIRED][0]
    operator = "NotIn" if node_is_shared else "In"
    merged = {"key": "track", "operator": operator, "values": ["blue"]}
    assert stored["labelSelector"]["matchExpressions"][1:] == [merged]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({REQUIRED: [{"labelSelector": {}}]}, "topologyKey: Required value"),
        ({PREFERRED: [{"weight": 101, "podAffinityTerm": exists("a", "zone")}]}, "must be in the range 1-100"),
        ({REQUIRED: [{"topologyKey": "zone", "matchLabelKeys": ["a"]}]}, "labelSelector: Required value"),
        ({REQUIRED: [term("a", "zone", "Near")]}, "'Near' is not a valid label selector operator"),
    ],
)
def test_invalid_terms(rules: Object, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        create(cluster_of("a"), "p", {"podAntiAffinity": rules})
