"""Facts of any API object, by JSON pointer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chaos.cluster.cluster_state import ApiFacts, UnknownFact
from chaos.core.api_fact import field, labels_fact, object_fact, taint_fact, unschedulable_fact
from chaos.core.ports import Response
from tests.kit.fakes import FakeKube

NODE = {
    "metadata": {"annotations": {"a.b/c": "x", "t~1": "y"}, "labels": {"a.b/zone": "a", "added": ""}},
    "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "k", "value": "v"}]},
}


def read(fact: str, status: int = 200, body: bytes = json.dumps(NODE).encode()) -> Any:
    assert ApiFacts.supports(fact)
    return ApiFacts(FakeKube({"/api/v1/nodes/n1": Response(status, body, {})})).read("n1", fact)


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        (unschedulable_fact("n1"), True),
        (unschedulable_fact("n2"), None),
        (taint_fact("k", "NoSchedule"), ""),
        (taint_fact("k", "NoExecute"), None),
        (object_fact("/api/v1/nodes/n1", "/metadata/annotations/a.b~1c"), "x"),
        (object_fact("/api/v1/nodes/n1", "/spec/taints/1/value"), "v"),
        (object_fact("/api/v1/nodes/n1", "/spec/taints/7/value"), None),
        (object_fact("/api/v1/nodes/n1", "/metadata/annotations/none/deeper"), None),
        (labels_fact(["a.b/zone", "lost"]), {"a.b/zone": "a"}),
        (labels_fact([]), {}),
        ("namespace/gone", "gone"),
    ],
)
def test_objects_that_exist_and_that_do_not(fact: str, value: Any) -> None:
    assert read(fact) == value


@pytest.mark.parametrize(
    ("owners", "value"),
    [
        ({}, True),  # unknown: of a server without managed fields
        ({"nodefall": "2026-01-01T00:00:00Z"}, True),
        ({"nodefall": "2026-01-01T00:00:00Z", "kubectl": "2026-01-02T00:00:00Z"}, False),
        ({"kubectl": "2026-01-02T00:00:00Z"}, False),
    ],
)
def test_whose_cordon_it_is(owners: dict[str, str], value: bool) -> None:
    fields: dict[str, Any] = {"fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    entries = [{"manager": name, "operation": "Update", "time": time} | fields for name, time in owners.items()]
    node = {"metadata": {"managedFields": entries}, "spec": {"unschedulable": True}}
    assert read("cordoned-by-nodefall", body=json.dumps(node).encode()) is value
    assert read("cordoned-by-nodefall", body=json.dumps(node | {"spec": {}}).encode()) is False
    assert read("cordoned-by-nodefall", 404) is False


def test_a_pointer_can_name_anything() -> None:
    assert field(NODE, "/metadata/annotations/t~01") == "y"
    assert field(NODE, "") == NODE


def test_unknown_is_not_absent() -> None:
    with pytest.raises(UnknownFact, match="answered 503"):
        read(unschedulable_fact("n1"), 503)
    with pytest.raises(UnknownFact):
        read(unschedulable_fact("n1"), 200, b"<html>")
    with pytest.raises(UnknownFact, match="answered 404"):
        read("node-ready", 404)


def test_facts_of_hosts_are_not_api_facts() -> None:
    assert not ApiFacts.supports("machine")
    assert not ApiFacts.supports("kubelet-state")
