"""Server-side apply over HTTP: requests that kubectl does not send."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.lab
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, data: dict[str, str], **metadata: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, **metadata}, "data": data}


def test_status_codes_and_conflicts(shared: Any) -> None:
    path = f"{MAPS}/applied?fieldManager="
    status, made = shared.api("PATCH", path + "one", config_map("applied", {"a": "1"}), **APPLY)
    (entry,) = made["metadata"]["managedFields"]
    assert (status, entry["manager"], entry["operation"]) == (201, "one", "Apply")
    assert entry["fieldsV1"] == {"f:data": {"f:a": {}}}
    status, said = shared.api("PATCH", path + "two", config_map("applied", {"a": "2"}), **APPLY)
    assert (status, said["reason"], said["details"]["causes"]) == (
        409,
        "Conflict",
        [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}],
    )
    assert said["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    status, taken = shared.api("PATCH", path + "two&force=true", config_map("applied", {"a": "2"}), **APPLY)
    assert (status, taken["data"], len(taken["metadata"]["managedFields"])) == (200, {"a": "2"}, 1)
    old = config_map("applied", {"a": "3"}, resourceVersion="1")
    assert shared.api("PATCH", path + "two", old, **APPLY)[0] == 409
    assert shared.api("DELETE", f"{MAPS}/applied")[0] == 200
    gone = config_map("applied", {}, uid=made["metadata"]["uid"])
    status, said = shared.api("PATCH", path + "two", gone, **APPLY)
    assert (status, "uid mismatch: the provided object specified uid" in said["message"]) == (409, True)


def test_an_empty_apply_owns_no_fields(shared: Any) -> None:
    empty = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "empty"}}
    status, made = shared.api("PATCH", f"{MAPS}/empty?fieldManager=me", empty, **APPLY)
    assert (status, "managedFields" in made["metadata"]) == (201, False)
    assert shared.api("DELETE", f"{MAPS}/empty")[0] == 200


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (config_map("new", {}, managedFields=[]), 400, "metadata.managedFields must be nil"),
        (config_map("other", {}), 400, "does not match the URL's"),
        ({**config_map("new", {}), "kind": "Secret"}, 400, "does not match the expected"),
        ({**config_map("new", {}), "extra": 1}, 500, ".extra: field not declared in schema"),
        (config_map("new", {}, labels={"a b": ""}), 422, "metadata.labels: Invalid value"),
        (config_map("New", {}), 400, "does not match"),
    ],
)
def test_invalid_applies(shared: Any, body: Any, code: int, words: str) -> None:
    status, said = shared.api("PATCH", f"{MAPS}/new?fieldManager=me", body, **APPLY)
    assert (status, said["kind"], words in said["message"]) == (code, "Status", True), said
    assert shared.api("GET", f"{MAPS}/new")[0] == 404


def test_status_is_applied_separately(shared: Any) -> None:
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "w2", "labels": {"x": "y"}}}
    seen = {"type": "Seen", "status": "True"}
    path = "/api/v1/nodes/w2/status?fieldManager=me"
    status, after = shared.api("PATCH", path, {**node, "status": {"conditions": [seen]}}, **APPLY)
    assert (status, "x" in after["metadata"]["labels"]) == (200, False)
    assert {"Seen", "Ready"} <= {item["type"] for item in after["status"]["conditions"]}
    mine = next(entry for entry in after["metadata"]["managedFields"] if entry["manager"] == "me")
    assert (mine["subresource"], list(mine["fieldsV1"])) == ("status", ["f:status"])
    assert shared.api("PATCH", path.replace("w2", "nope"), {**node, "metadata": {"name": "nope"}}, **APPLY)[0] == 404


def test_apply_needs_permission_to_create(make_lab: Any) -> None:
    rule = {"verbs": ["get", "patch"], "resources": ["configmaps"]}
    lab = make_lab(users=[{"name": "tester", "rules": [rule]}])
    assert lab.api("POST", MAPS, config_map("there", {"a": "1"}))[0] == 201
    token = lab.facts["users"][0]["token"]
    headers = {**APPLY, "Authorization": f"Bearer {token}"}
    there = lab.api("PATCH", f"{MAPS}/there?fieldManager=me", config_map("there", {"b": "1"}), **headers)
    assert there[0] == 200
    status, said = lab.api("PATCH", f"{MAPS}/new?fieldManager=me", config_map("new", {}), **headers)
    assert (status, 'cannot create resource "configmaps"' in said["message"]) == (403, True)
