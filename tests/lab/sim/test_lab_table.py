"""Order and indexes of the store against a full scan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.apiserver.store import Change, NotFoundError, Store
from chaos.lab.sim import SimClock

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
