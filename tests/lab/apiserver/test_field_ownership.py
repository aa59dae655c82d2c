"""The algorithm of server-side apply: cases of structured-merge-diff and of Kubernetes' documentation, and laws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.http.field_sets import SchemaError, differences, field_type_of, fields_of, merge, remove_fields
from chaos.lab.http.managed_fields import LAST_APPLIED, Writer, apply_configuration, decode, encode, record_update
from chaos.lab.http.ownership import ApplyConflict, ManagedFieldsEntry, Manager, Managers, Updater
from chaos.lab.http.resources import RESOURCES

DEPLOYMENT = RESOURCES["apps/v1", "deployments"]
CONFIG_MAP = RESOURCES["v1", "configmaps"]
POD = field_type_of(RESOURCES["v1", "pods"])
RULES = Updater(field_type_of(CONFIG_MAP), lambda path: True)
ONE, TWO = Manager("one", "Apply"), Manager("two", "Apply")
UPDATER = Manager("updater", "Update")


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def named(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [  # typed/merge_test.go, as fields of pods
        ({"containers": named("a", "b")}, {"containers": named("b", image="x")}, ["a", "b=x"]),
        ({"containers": named("a", "b", "c")}, {"containers": named("c", "b")}, ["a", "c", "b"]),
        ({"containers": named("a", "b")}, {"containers": named("d", "b", "e")}, ["a", "d", "b", "e"]),
        ({"containers": named("1", "2", "3")}, {"containers": named("3", "1", "4")}, ["2", "3", "1", "4"]),
        ({}, {"containers": named("a")}, ["a"]),
        ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"c": "d"}}, {"nodeSelector": {"c": "d"}}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        ({"securityContext": {"runAsUser": 1}}, {"securityContext": {}}, {"securityContext": {"runAsUser": 1}}),
        ({"hostname": "a"}, {"hostname": "b", "subdomain": "c"}, {"hostname": "b", "subdomain": "c"}),
    ],
)
def test_merge(old: Any, new: Any, merged: Any) -> None:
    result = merge(spec(**old), spec(**new), POD)["spec"]
    if isinstance(merged, list):
        texts = [
            "=".join([item["name"], *([item["image"]] if "image" in item else [])]) for item in result["containers"]
        ]
        assert texts == merged
    else:
        assert result == merged


def test_fields_of_a_pod() -> None:
    container = {"name": "c", "args": ["x"], "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}
    pod = {
        "metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]},
        **spec(containers=[container], securityContext={}, nodeSelector={"a": "b"}),
    }
    at = ("f:spec", "f:containers", 'k:{"name":"c"}')
    port = (*at, "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}')
    assert set(fields_of(pod, POD)) == {
        ("f:metadata", "f:labels", "f:a"),
        ("f:metadata", "f:finalizers", 'v:"x/y"'),
        ("f:spec", "f:nodeSelector"),
        ("f:spec", "f:securityContext"),
        at,
        (*at, "f:name"),
        (*at, "f:args"),
        port,
        (*port, "f:containerPort"),
        (*at, "f:resources", "f:limits", "f:cpu"),
    }


def test_differences() -> None:
    old = spec(hostname="a", containers=named("a", "b"), nodeSelector={"a": "b"}, tolerations=[])
    new = spec(subdomain="b", containers=named("b", image="x"), nodeSelector={"a": "c"}, tolerations=[])
    at = ("f:spec", "f:containers")
    assert set(differences(old, new, POD)) == {
        (("f:spec", "f:hostname"), True),
        (("f:spec", "f:subdomain"), False),
        (("f:spec", "f:nodeSelector"), False),
        ((*at, 'k:{"name":"a"}'), True),
        ((*at, 'k:{"name":"a"}', "f:name"), True),
        ((*at, 'k:{"name":"b"}', "f:image"), False),
    }


def test_lists_without_keys() -> None:
    with pytest.raises(SchemaError, match="omits all key fields"):
        list(fields_of(spec(containers=[{"image": "x"}]), POD))
    with pytest.raises(SchemaError, match="no scalar"):
        list(fields_of({"metadata": {"finalizers": [{}]}}, POD))


def test_remove_fields() -> None:
    pod = spec(hostname="h", containers=named("a", "b", image="x"))
    gone = {("f:spec", "f:containers", 'k:{"name":"a"}'), ("f:spec", "f:containers", 'k:{"name":"b"}', "f:image")}
    assert remove_fields(pod, POD, frozenset(gone)) == spec(hostname="h", containers=named("b"))
    assert remove_fields(spec(hostname="h"), POD, frozenset({("f:spec", "f:hostname")})) == {}


def data(**items: str) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "data": items}


def apply(live: Any, patch: Any, managers: Managers, manager: Manager, force: bool = False) -> tuple[Any, Managers]:
    return RULES.apply(live, patch, managers, manager, force)


def test_the_documentation() -> None:
    """kubernetes.io/docs/reference/using-api/server-side-apply: conflict, force, release, share."""
    live, managers = apply({}, data(key="some value"), {}, ONE)
    changed = data(key="new value")
    managers = RULES.update(live, changed, managers, UPDATER)
    assert ("f:data", "f:key") not in managers[ONE].fields
    assert managers[UPDATER].fields == {("f:data", "f:key")}
    with pytest.raises(ApplyConflict) as caught:
        apply(changed, data(key="some value"), managers, ONE)
    assert caught.value.conflicts == [(UPDATER, ("f:data", "f:key"))]
    forced, owners = apply(changed, data(key="some value"), managers, ONE, force=True)
    assert (forced, list(owners)) == (data(key="some value"), [ONE])
    given_up, owners = apply(changed, {"metadata": {"name": "x"}}, managers, ONE)
    assert (given_up, UPDATER in owners) == (changed, True)
    shared, owners = apply(changed, changed, managers, ONE)
    assert (shared, set(owners)) == (changed, {ONE, UPDATER})
    left, owners = apply(shared, {"metadata": {"name": "x"}}, owners, ONE)
    assert left == changed, "the other still owns it"


DATA = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xy"), max_size=4).map(lambda items: data(**items))


@given(DATA, DATA, DATA)
def test_laws(first: Any, second: Any, third: Any) -> None:
    live, managers = apply({}, first, {}, ONE)
    assert live == first
    assert apply(live, first, managers, ONE) == (live, managers), "twice is once"
    both, owners = apply(live, second, managers, TWO, force=True)
    assert both["data"] == first["data"] | second["data"], "force takes over"
    mine = {key for key in first["data"] if second["data"].get(key, first["data"][key]) == first["data"][key]}
    assert {path[1][2:] for path in owners[ONE].fields if path[0] == "f:data" and len(path) == 2} == mine
    less = data(**{key: value for key, value in first["data"].items() if key in third["data"] and key in mine})
    after, owners = apply(both, less, owners, ONE)
    assert after.get("data", {}) == less["data"] | second["data"], "what is no longer applied goes, unless shared"


def writer(name: str = "me", subresource: str = "") -> Writer:
    return Writer(name, DEPLOYMENT, subresource, "2026-01-01T00:00:00Z")


def test_managed_fields_round_trip() -> None:
    fields = frozenset({("f:spec",), ("f:spec", "f:replicas"), ("f:metadata", "f:labels", "f:a")})
    managers = {
        Manager("z", "Update", "scale"): ManagedFieldsEntry(fields, "2020-01-01T00:00:00Z"),
        ONE: ManagedFieldsEntry(fields),
    }
    entries = encode(managers, writer())
    assert [entry["manager"] for entry in entries] == ["one", "z"], "applies first"
    assert entries[1] == {
        "manager": "z",
        "operation": "Update",
        "subresource": "scale",
        "apiVersion": "apps/v1",
        "time": "2020-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {".": {}, "f:replicas": {}}},
    }
    assert decode(entries) == {**managers, ONE: ManagedFieldsEntry(fields, "2026-01-01T00:00:00Z")}


def deployment(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "namespace": "y"}, "spec": fields}


def test_ordinary_writes_are_recorded() -> None:
    new = {**deployment(replicas=1), "status": {"replicas": 3}}
    record_update(writer("maker"), None, new)
    (entry,) = new["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {".": {}, "f:replicas": {}}}, "neither names nor the status"
    later = {**deployment(replicas=2), "metadata": dict(new["metadata"])}
    record_update(writer("scaler", "scale"), new, later)
    assert [(entry["manager"], entry.get("subresource")) for entry in later["metadata"]["managedFields"]] == [
        ("maker", None),
        ("scaler", "scale"),
    ]


def test_objects_without_managed_fields_get_none_before_an_apply() -> None:
    live, new = deployment(replicas=1), deployment(replicas=2)
    record_update(writer(), live, new)
    assert "managedFields" not in new["metadata"]
    with pytest.raises(ApplyConflict):
        apply_configuration(writer(), new, deployment(replicas=3), force=False)
    _, entries = apply_configuration(writer(), new, deployment(replicas=2), force=False)
    assert [entry["manager"] for entry in entries] == ["me", "before-first-apply"]


def test_owners_of_a_node_that_its_kubelet_created() -> None:
    """As on a real server, where the kubelet's creation is recorded, so the first writer is known."""

    def write(name: str, live: dict[str, Any], subresource: str = "", **changed: Any) -> dict[str, Any]:
        new = {**live, "metadata": dict(live["metadata"]), "spec": {**live["spec"], **changed}}
        new["spec"] = {key: value for key, value in new["spec"].items() if value is not None}
        record_update(Writer(name, RESOURCES["v1", "nodes"], subresource, "2026-01-02T00:00:00Z"), live, new)
        return new

    def owners(node: dict[str, Any]) -> dict[str, Any]:
        return {entry["manager"]: entry["fieldsV1"]["f:spec"] for entry in node["metadata"]["managedFields"]}

    metadata = {"name": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    live: dict[str, Any] = {"metadata": metadata, "spec": {"providerID": "p"}, "status": {"conditions": []}}
    assert "managedFields" not in write("kubelet", live, "status")["metadata"]
    cordoned = write("kubectl", live, unschedulable=True)
    assert [entry["time"] for entry in cordoned["metadata"]["managedFields"]] == [
        "2026-01-01T00:00:00Z",
        "2026-01-02T00:00:00Z",
    ]
    assert owners(cordoned) == {"kubelet": {".": {}, "f:providerID": {}}, "kubectl": {"f:unschedulable": {}}}
    tainted = write("nodefall", cordoned, taints=[{"key": "a", "effect": "NoSchedule"}])
    assert owners(tainted)["nodefall"] == {"f:taints": {}}
    other = write("kubectl-taint", tainted, taints=[{"key": "b", "effect": "NoSchedule"}])
    assert "nodefall" not in owners(other), "the list is atomic"
    assert "kubectl" not in owners(write("x", other, unschedulable=None)), "a removed field has no owner"


def sent_entry(**more: Any) -> list[dict[str, Any]]:
    return [{"manager": "x", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}, **more}]


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        ([], []),
        ([{}], []),
        (None, ["maker"]),
        (sent_entry(), ["x"]),
        ([{"manager": "x"}], ["maker"]),
        (3, ["maker"]),
        ([3], ["maker"]),
        (sent_entry(operation="Take"), ["maker"]),
        (sent_entry(fieldsV1={"f:spec": 3}), ["maker"]),
        (sent_entry(fieldsV1={"f:spec": {"k:3": {}}}), ["maker"]),
        (sent_entry(fieldsV1={"f:spec": {"k:{": {}}}), ["maker"]),
        *((sent_entry(fieldsV1={name: {}}), ["maker"]) for name in ("spec", ":x", "v:", "i:0")),
    ],
)
def test_managed_fields_of_a_request(sent: Any, left: list[str]) -> None:
    live = deployment(replicas=1)
    record_update(writer("maker"), None, live)
    new = deployment(replicas=1)
    if sent is not None:
        new["metadata"]["managedFields"] = sent
    record_update(writer(), live, new)
    assert [entry["manager"] for entry in new["metadata"].get("managedFields", [])] == left


def test_at_most_ten_updaters() -> None:
    live = deployment(replicas=0)
    record_update(writer("maker"), None, live)
    for number in range(1, 15):
        new = deployment(replicas=0, minReadySeconds=number)
        new["metadata"]["labels"] = {**live["metadata"].get("labels", {}), f"l{number}": "x"}
        now = f"2026-01-01T00:00:{number:02}Z"
        record_update(Writer(f"w{number}", DEPLOYMENT, "", now), live, new)
        live = new
    names = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert (len(names), names[0], names[-1]) == (10, "ancient-changes", "w14")


def test_kubectl_takes_over_client_side_applied_fields() -> None:
    last = '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"replicas":1}}'
    live = deployment(replicas=1)
    live["metadata"]["annotations"] = {LAST_APPLIED: last}
    record_update(writer("kubectl-client-side-apply"), None, live)
    new, _ = apply_configuration(writer("kubectl"), live, deployment(replicas=2), force=False)
    assert new["spec"] == {"replicas": 2}
    assert '"replicas":2' in new["metadata"]["annotations"][LAST_APPLIED]
    with pytest.raises(ApplyConflict):
        apply_configuration(writer("other"), live, deployment(replicas=2), force=False)
