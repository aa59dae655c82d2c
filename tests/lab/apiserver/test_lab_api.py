"""The API server over real connections: reads, writes, errors, selectors, paging."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.lab
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"a": "1"}}


def names(answer: tuple[int, Any]) -> list[str]:
    assert answer[0] == 200, answer
    return [item["metadata"]["name"] for item in answer[1]["items"]]


@pytest.fixture
def maps(shared: Any) -> Any:
    for name, labels in (("one", {"app": "x", "tier": "a"}), ("two", {"app": "x"}), ("three", {"app": "y"})):
        assert shared.api("POST", MAPS, config_map(name, **labels))[0] == 201
    yield shared
    assert shared.api("DELETE", MAPS)[0] == 200
    assert names(shared.api("GET", MAPS)) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["one", "three", "two"]),
        ("?labelSelector=app%3Dx", ["one", "two"]),
        ("?labelSelector=app%3D%3Dx,tier", ["one"]),
        ("?labelSelector=app!%3Dx", ["three"]),
        ("?labelSelector=!tier", ["three", "two"]),
        ("?labelSelector=app%20in%20(x,z),tier%20notin%20(a)", ["two"]),
        ("?fieldSelector=metadata.name%3Dtwo", ["two"]),
        ("?fieldSelector=metadata.name!%3Dtwo", ["one", "three"]),
        ("?fieldSelector=metadata.name%3Dtwo&labelSelector=app%3Dy", []),
    ],
)
def test_selectors(maps: Any, query: str, expected: list[str]) -> None:
    assert names(maps.api("GET", MAPS + query)) == expected


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "code", "reason"),
    [
        ("GET", MAPS + "/nope", None, "", 404, "NotFound"),
        ("GET", "/api/v1/widgets", None, "", 404, "NotFound"),
        ("GET", MAPS + "?fieldSelector=data.a%3D1", None, "", 400, "BadRequest"),
        ("GET", MAPS + "?labelSelector=a%20b%20c", None, "", 400, "BadRequest"),
        ("GET", MAPS + "?limit=x", None, "", 400, "BadRequest"),
        ("GET", MAPS + "?continue=x", None, "", 400, "BadRequest"),
        ("GET", "/api/v1/namespaces/default/pods/x/log", None, "", 501, "NotImplemented"),
        ("POST", "/api/v1/namespaces/default/pods/x/eviction", {}, "", 400, "BadRequest"),
        ("POST", "/api/v1/namespaces/default/pods/x/eviction", {"metadata": {"name": "x"}}, "", 404, "NotFound"),
        ("PUT", MAPS, config_map("x"), "", 405, "MethodNotAllowed"),
        ("POST", MAPS, {"kind": "Secret", "metadata": {"name": "x"}}, "", 400, "BadRequest"),
        ("POST", MAPS, {"kind": "ConfigMap"}, "", 400, "BadRequest"),
        ("POST", MAPS, [], "", 400, "BadRequest"),
        ("POST", MAPS, {"metadata": {"name": "one"}}, "", 409, "AlreadyExists"),
        ("POST", MAPS, {"metadata": {}}, "", 422, "Invalid"),
        ("POST", "/api/v1/namespaces/nope/configmaps", config_map("x"), "", 404, "NotFound"),
        ("PATCH", MAPS + "/one", {"metadata": {"resourceVersion": "1"}}, MERGE, 409, "Conflict"),
        ("PATCH", MAPS + "/one", {}, "application/apply-patch+cbor", 415, "UnsupportedMediaType"),
        ("PATCH", MAPS + "/one", config_map("one"), APPLY, 422, "Invalid"),
        ("PATCH", MAPS + "/one?fieldManager=me&force=x&dryRun=No", config_map("one"), APPLY, 422, "Invalid"),
        ("PATCH", MAPS + "/one?fieldManager=" + "x" * 129, config_map("one"), APPLY, 422, "Invalid"),
        ("PATCH", MAPS + "/one?fieldManager=me", [], APPLY, 400, "BadRequest"),
        ("PATCH", MAPS + "/one?fieldManager=me", {"kind": "Pod", "apiVersion": "v1"}, APPLY, 400, "BadRequest"),
        ("PATCH", MAPS + "/one?fieldManager=me&fieldValidation=No", config_map("one"), APPLY, 422, "Invalid"),
        ("PATCH", MAPS + "/one?force=true", {}, MERGE, 422, "Invalid"),
        ("PATCH", MAPS + "/one?fieldValidation=No", {}, MERGE, 422, "Invalid"),
        ("PATCH", MAPS + "/one", [{"op": "test", "path": "/data/a", "value": "2"}], JSON_PATCH, 422, "Invalid"),
        ("PATCH", MAPS + "/one", [{"op": "remove", "path": "/data/b"}], JSON_PATCH, 422, "Invalid"),
        ("PATCH", MAPS + "/one", {"metadata": {"name": "other"}}, MERGE, 400, "BadRequest"),
        ("DELETE", MAPS + "/one", {"preconditions": {"uid": "another"}}, "", 409, "Conflict"),
    ],
)
def test_refusals(maps: Any, method: str, path: str, body: Any, kind: str, code: int, reason: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    status, answer = maps.api(method, path, body, **headers)
    assert (status, answer["kind"], answer["code"], answer["reason"]) == (code, "Status", code, reason)
    assert answer["status"] == "Failure"
    assert answer["message"]


@pytest.mark.parametrize(
    ("token", "nodes", "version"), [("Bearer wrong", 401, 401), ("Basic eDp5", 401, 401), ("", 403, 200)]
)
def test_authentication(shared: Any, token: str, nodes: int, version: int) -> None:
    assert shared.api("GET", "/api/v1/nodes", Authorization=token)[0] == nodes
    assert shared.api("GET", "/version", Authorization=token)[0] == version


@pytest.mark.parametrize(
    ("kind", "patch", "data"),
    [
        (MERGE, {"data": {"b": "2"}}, {"a": "1", "b": "2"}),
        (MERGE, {"data": {"a": None}}, {}),
        (STRATEGIC, {"data": {"a": "3"}}, {"a": "3"}),
        (JSON_PATCH, [{"op": "replace", "path": "/data", "value": {"c": "4"}}], {"c": "4"}),
        (JSON_PATCH, [{"op": "move", "from": "/data/a", "path": "/data/z~1y"}], {"z/y": "1"}),
    ],
)
def test_patch(maps: Any, kind: str, patch: Any, data: dict[str, str]) -> None:
    before = maps.api("GET", MAPS + "/one")[1]
    status, after = maps.api("PATCH", MAPS + "/one", patch, **{"Content-Type": kind})
    assert status == 200
    assert after.get("data", {}) == data
    assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_strategic_merge_of_conditions(shared: Any) -> None:
    path = "/api/v1/nodes/w2/status"
    patch = {"status": {"conditions": [{"type": "Custom", "status": "True"}]}}
    before = shared.api("GET", path)[1]["status"]["conditions"]
    status, after = shared.api("PATCH", path, patch, **{"Content-Type": STRATEGIC})
    assert status == 200
    assert after["status"]["conditions"] == [{"type": "Custom", "status": "True"}, *before]


def test_annotations_are_written_with_the_status_of_a_node(shared: Any) -> None:
    path = "/api/v1/nodes/w2/status"
    for value in ("x", None):
        patch = {"metadata": {"annotations": {"example.com/a": value}}, "spec": {"unschedulable": True}}
        status, after = shared.api("PATCH", path, patch, **{"Content-Type": STRATEGIC})
        assert status == 200
        assert (after["metadata"].get("annotations") or {}).get("example.com/a") == value
        assert "unschedulable" not in after["spec"]


def test_put_with_a_resource_version(maps: Any) -> None:
    read = maps.api("GET", MAPS + "/one")[1]
    assert maps.api("PUT", MAPS + "/one", {**read, "data": {"a": "2"}})[0] == 200
    status, answer = maps.api("PUT", MAPS + "/one", {**read, "data": {"a": "3"}})
    assert (status, answer["reason"]) == (409, "Conflict")


def test_paging_stays_at_one_version(maps: Any) -> None:
    _, first = maps.api("GET", MAPS + "?limit=2")
    assert first["metadata"]["remainingItemCount"] == 1
    assert maps.api("DELETE", MAPS + "/two")[0] == 200
    _, second = maps.api("GET", f"{MAPS}?limit=2&continue={first['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in first["items"] + second["items"]] == ["one", "three", "two"]
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


def test_a_dropped_page_is_gone(shared: Any) -> None:
    first = shared.api("GET", "/api/v1/nodes?limit=1")[1]["metadata"]["continue"]
    for _ in range(64):
        shared.api("GET", "/api/v1/nodes?limit=1")
    status, answer = shared.api("GET", f"/api/v1/nodes?limit=1&continue={first}")
    assert (status, answer["reason"]) == (410, "Expired")


def test_access_review(shared: Any) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    review = {"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
    status, answer = shared.api("POST", path, review)
    assert (status, answer["status"]) == (201, {"allowed": True})


def test_a_pod_is_deleted_gracefully_and_a_namespace_with_its_objects(shared: Any) -> None:
    assert shared.api("POST", "/api/v1/namespaces", {"metadata": {"name": "trial"}})[0] == 201
    pods = "/api/v1/namespaces/trial/pods"
    spec = {"containers": [{"name": "c"}], "nodeName": "w1", "terminationGracePeriodSeconds": 7}
    for name in ("left", "right"):
        assert shared.api("POST", pods, {"metadata": {"name": name}, "spec": spec})[0] == 201
    shared.wait(10)
    assert names(shared.api("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dw1,status.phase%3DRunning")) == [
        "left",
        "right",
    ]
    status, pod = shared.api("DELETE", pods + "/left", {"gracePeriodSeconds": 3})
    assert (status, pod["kind"], pod["metadata"]["deletionGracePeriodSeconds"]) == (200, "Pod", 3)
    assert shared.api("DELETE", "/api/v1/namespaces/trial")[0] == 200
    assert shared.api("POST", pods, {"metadata": {"name": "late"}, "spec": spec})[0] == 403
    shared.wait(60)
    assert names(shared.api("GET", pods)) == []
    assert shared.api("GET", "/api/v1/namespaces/trial")[0] == 404


def test_eviction_and_its_refusals(shared: Any) -> None:
    labels = {"app": "kept"}
    pods, budgets = "/api/v1/namespaces/default/pods", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    body = {"containers": [{"name": "c"}], "nodeName": "w1", "terminationGracePeriodSeconds": 3}
    for name in ("kept-1", "kept-2"):
        assert shared.api("POST", pods, {"metadata": {"name": name, "labels": labels}, "spec": body})[0] == 201
    budget = {"metadata": {"name": "kept"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}
    assert shared.api("POST", budgets, budget)[0] == 201
    shared.wait(10)
    eviction = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "kept-1", "namespace": "default"}}
    path = f"{pods}/kept-1/eviction"
    assert shared.api("POST", f"{path}?dryRun=All", eviction)[0] == 201
    status, answer = shared.api("POST", path, eviction)
    assert (status, answer["kind"], answer["status"]) == (201, "Status", "Success")
    shared.wait(10)
    status, answer = shared.api("POST", f"{pods}/kept-2/eviction", {"metadata": {"name": "kept-2"}})
    assert (status, answer["reason"]) == (429, "TooManyRequests")
    (cause,) = answer["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget kept needs 1 healthy pods and has 1 currently"
    assert shared.api("DELETE", f"{budgets}/kept")[0] == 200
    assert shared.api("POST", budgets, budget)[0] == 201
    status, answer = shared.api("POST", f"{pods}/kept-2/eviction", {"metadata": {"name": "kept-2"}})
    assert (status, answer["details"]["retryAfterSeconds"]) == (429, 10)
    assert shared.api("DELETE", f"{budgets}/kept")[0] == 200
    assert shared.api("DELETE", pods)[0] == 200
    shared.wait(10)


def test_racing_evictions_get_a_response_after_the_race(shared: Any) -> None:
    """The server itself retries the second one after 0.5 s, and then refuses it."""
    labels = {"app": "raced"}
    pods, budgets = "/api/v1/namespaces/default/pods", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    body = {"containers": [{"name": "c"}], "nodeName": "w1", "terminationGracePeriodSeconds": 3}
    for name in ("raced-1", "raced-2"):
        assert shared.api("POST", pods, {"metadata": {"name": name, "labels": labels}, "spec": body})[0] == 201
    budget = {"metadata": {"name": "raced"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}
    assert shared.api("POST", budgets, budget)[0] == 201
    shared.wait(10)
    with shared.clock.participant():
        begin = shared.clock.now()
        codes = [
            shared.api("POST", f"{pods}/{name}/eviction", {"metadata": {"name": name}})[0]
            for name in ("raced-1", "raced-2")
        ]
        assert codes == [201, 429]
        assert 0.4 < shared.clock.now() - begin < 2.0
    assert shared.api("DELETE", f"{budgets}/raced")[0] == 200
    assert shared.api("DELETE", pods)[0] == 200
    shared.wait(10)
