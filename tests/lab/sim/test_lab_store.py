"""Order and indexes of the store against a full scan.

Validation of metadata, with Kubernetes' messages.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.admission_metadata import check_new, check_update
from chaos.lab.apiserver.store import Change, NotFoundError, Store
from chaos.lab.cluster import Cluster
from chaos.lab.sim import SimClock
from chaos.lab.spec import LabSpec, NodeSpec

NAMESPACES, NAMES, NODES, OWNERS = ("a", "a-b", "b"), ("x", "y", "z", "z0"), ("", "n1", "n2"), ("u1", "u2")
SELECTOR = {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}


def pod(namespace: str, name: str, node: str, owner: str, app: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name, "labels": {"app": app}, "ownerReferences": [{"uid": owner}]}
    claim = {"persistentVolumeClaim": {"claimName": app}}
    return {"metadata": metadata, "spec": {"nodeName": node, "volumes": [claim, {"emptyDir": {}}]}}


PODS = st.builds(
    pod, *(st.sampled_from(values) for values in (NAMESPACES, NAMES, NODES, OWNERS, NAMES))
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["put", "put", "remove", "look"]), PODS)))
def test_order_and_indexes_equal_those_of_a_scan(operations: list[tuple[str, dict[str, Any]]]) -> None:
    store = Store(SimClock(0.0, 1))
    known: dict[tuple[str, str], dict[str, Any]] = {}
    for operation, obj in [*operations, ("look", {})]:
        if operation == "look":
            compare(store, [known[key] for key in sorted(known)])
            continue
        key = (obj["metadata"]["namespace"], obj["metadata"]["name"])
        if operation == "put":
            known[key] = store.update("pods", obj) if key in known else store.create("pods", obj)
        elif known.pop(key, None):
            store.remove("pods", *key)
        else:
            with pytest.raises(NotFoundError):
                store.remove("pods", *key)


def compare(store: Store, pods: list[dict[str, Any]]) -> None:
    assert store.list("pods") == pods
    for namespace in NAMESPACES:
        inside = [item for item in pods if item["metadata"]["namespace"] == namespace]
        assert store.list("pods", namespace) == inside
        assert store.pods_matching(namespace, {}) == inside
        chosen = [item for item in inside if item["metadata"]["labels"] == {"app": "x"}]
        assert store.pods_matching(namespace, SELECTOR) == chosen
        assert store.pods_using(namespace, "x") == chosen
    for node in NODES[1:]:
        assert store.pods_on(node) == [item for item in pods if item["spec"]["nodeName"] == node]
    for uid in OWNERS:
        owned = [item for item in pods if item["metadata"]["ownerReferences"] == [{"uid": uid}]]
        assert store.list_owned("pods", uid) == owned


def test_missing_selector_and_unknown_kind_select_nothing() -> None:
    store = Store(SimClock(0.0, 1))
    store.create("pods", pod("a", "x", "n1", "u1", "x"))
    assert store.pods_matching("a", None) == []
    assert (store.list("nodes"), store.list_owned("nodes", "u1"), store.get("nodes", "", "n1")) == ([], [], None)


def test_subscribers_get_changes_of_their_kinds_and_kubelets_first() -> None:
    store = Store(SimClock(0.0, 1))
    heard: list[tuple[str, str]] = []

    def listener(who: str) -> Any:
        def hear(change: Change) -> None:
            heard.append((who, change.object["metadata"]["name"]))

        return hear

    store.subscribe(listener("all"))
    store.subscribe(listener("nodes"), "nodes")
    store.subscribe_node("n1", listener("kubelet"))
    store.create("pods", pod("a", "mine", "n1", "u1", "x"))
    store.create("pods", pod("a", "unbound", "", "u1", "x"))
    store.create("nodes", {"metadata": {"name": "n1"}})
    assert heard == [("kubelet", "mine"), ("all", "mine"), ("all", "unbound"), ("all", "n1"), ("nodes", "n1")]


SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


@pytest.mark.parametrize(
    ("plural", "name", "why"),
    [
        ("pods", "Upper", [SUBDOMAIN]),
        ("configmaps", "a_b", [SUBDOMAIN]),
        ("configmaps", "a..b", [SUBDOMAIN]),
        ("nodes", "x" * 254, ["must be no more than 253 bytes"]),
        ("namespaces", "a.b", ["must not contain dots"]),
        ("namespaces", "x" * 64, ["must be no more than 63 bytes"]),
        ("services", "1web", [LABEL_1035]),
        ("pods", "web\n", [SUBDOMAIN]),
    ],
)
def test_invalid_names(plural: str, name: str, why: list[str]) -> None:
    shown = name.replace("\n", "\\n")
    assert check_new(plural, {"name": name}) == [f'metadata.name: Invalid value: "{shown}": {text}' for text in why]


@pytest.mark.parametrize(
    ("plural", "name"),
    [
        ("pods", "web-0.x"),
        ("namespaces", "kube-system"),
        ("services", "a1"),
        ("events", "w1.17B3"),
        ("nodes", "ip-1.x"),
    ],
)
def test_valid_names(plural: str, name: str) -> None:
    assert check_new(plural, {"name": name}) == []


@pytest.mark.parametrize(("base", "fine"), [("web-", True), ("w-", True), ("Web-", False), ("-web-", False)])
def test_generate_name(base: str, fine: bool) -> None:
    fields = [problem.partition(":")[0] for problem in check_new("pods", {"generateName": base, "name": base + "x"})]
    assert fields == ([] if fine else ["metadata.generateName", "metadata.name"])


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"labels": {"a": "b c"}}, 'labels: Invalid value: "b c": a valid label must be an empty string or consist of'),
        ({"labels": {"": "x"}}, 'labels: Invalid value: "": name part must be non-empty'),
        ({"labels": {"a!": ""}}, f'labels: Invalid value: "a!": {NAME_PART}'),
        ({"labels": {"/a": ""}}, 'labels: Invalid value: "/a": prefix part must be non-empty'),
        ({"labels": {"X.io/a": ""}}, f'labels: Invalid value: "X.io/a": prefix part {SUBDOMAIN}'),
        ({"labels": {"a/b/c": ""}}, 'labels: Invalid value: "a/b/c": a valid label key must consist of'),
        ({"labels": {"a": "x" * 64}}, f'labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes'),
        ({"annotations": {"a b": ""}}, 'annotations: Invalid value: "a b": name part'),
        ({"annotations": {"a": "x" * 262144}}, "annotations: Too long: must have at most 262144 bytes"),
        ({"finalizers": ["a b"]}, 'finalizers: Invalid value: "a b": name part'),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            'finalizers: Invalid value: ["orphan", "foregroundDeletion"]',
        ),
        ({"ownerReferences": [{**OWNER, "uid": ""}]}, 'ownerReferences.uid: Invalid value: "": must not be empty'),
        ({"ownerReferences": [{**OWNER, "kind": "Event"}]}, "ownerReferences: Invalid value: "),
        ({"ownerReferences": [{**OWNER, "controller": True}] * 2}, "ownerReferences: Invalid value: "),
    ],
)
def test_other_metadata(metadata: Any, problem: str) -> None:
    assert check_new("pods", {"name": "x", **metadata})[0].startswith("metadata." + problem)
    assert check_update({"name": "x", **metadata}, {"name": "x"})[0].startswith("metadata." + problem)
    assert check_update({"name": "x", **metadata}, {"name": "x", **metadata}) == [], "what was there is not judged"


def test_annotations_may_be_in_upper_case() -> None:
    assert check_new("pods", {"name": "x", "annotations": {"Example.com/A": "any thing"}, "labels": {"a": ""}}) == []


def test_no_new_finalizer_on_a_deleted_object() -> None:
    before = {"deletionTimestamp": "x", "finalizers": ["a/b"]}
    (problem,) = check_update({"finalizers": ["a/b", "c/d"]}, before)
    assert problem.endswith('being deleted, found new finalizers []string{"c/d"}')
    assert check_update({"finalizers": []}, before) == []


def test_all_problems_are_reported() -> None:
    cluster = Cluster(LabSpec(nodes=[NodeSpec(name="w1")]))
    cluster.start()
    with pytest.raises(InvalidError) as caught:
        cluster.create_object("configmaps", {"metadata": {"name": "A", "labels": {"a b": "c d"}}})
    assert [problem.partition(":")[0] for problem in caught.value.args] == ["metadata.name", *["metadata.labels"] * 2]
