"""Lists: resource versions, pages, and invalid options."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from chaos.lab.http.errors import ApiError
from chaos.lab.http.options import ListOptions, Paginator, parse_list_options
from chaos.lab.sim import SimClock

MAPS = "/api/v1/namespaces/default/configmaps"
PARTIAL = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"


def names(answer: tuple[int, Any]) -> list[str]:
    assert answer[0] == 200, answer
    return [item["metadata"]["name"] for item in answer[1]["items"]]


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ({}, ListOptions()),
        ({"resourceVersion": "0", "limit": "5"}, ListOptions(limit=5)),
        ({"resourceVersion": "7"}, ListOptions(7)),
        ({"resourceVersion": "7", "limit": "5"}, ListOptions(7, is_exact=True, limit=5)),
        ({"resourceVersion": "7", "limit": "5", "resourceVersionMatch": "NotOlderThan"}, ListOptions(7, limit=5)),
        ({"resourceVersion": "7", "resourceVersionMatch": "Exact"}, ListOptions(7, is_exact=True)),
        ({"continue": "x", "resourceVersion": "0"}, ListOptions(continue_token="x")),
    ],
)
def test_options(query: dict[str, str], options: ListOptions) -> None:
    assert parse_list_options(query) == options


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ({"resourceVersionMatch": "Exact"}, 422, "forbidden unless resourceVersion is provided"),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, 422, "forbidden for resourceVersion"),
        ({"resourceVersion": "7", "resourceVersionMatch": "Roughly"}, 422, 'Unsupported value: "Roughly"'),
        ({"resourceVersion": "7", "resourceVersionMatch": "Exact", "continue": "x"}, 422, "when continue is provided"),
        ({"sendInitialEvents": "true"}, 422, "sendInitialEvents is forbidden for list"),
        ({"resourceVersion": "7", "continue": "x"}, 400, "not allowed when using continue"),
        ({"resourceVersion": "x"}, 500, "invalid syntax"),
        ({"limit": "-1"}, 400, "not a whole number"),
    ],
)
def test_invalid_options(query: dict[str, str], code: int, text: str) -> None:
    with pytest.raises(ApiError, match=text) as refused:
        parse_list_options(query)
    assert refused.value.code == code


@pytest.mark.lab
def test_exact_and_not_older(shared: Any) -> None:
    for name in ("one", "two"):
        assert shared.api("POST", MAPS, {"metadata": {"name": name}})[0] == 201
    then = shared.api("GET", MAPS)[1]["metadata"]["resourceVersion"]
    assert shared.api("DELETE", f"{MAPS}/one")[0] == 200
    merge = {"Content-Type": "application/merge-patch+json"}
    assert shared.api("PATCH", f"{MAPS}/two", {"data": {"a": "1"}}, **merge)[0] == 200
    assert shared.api("POST", MAPS, {"metadata": {"name": "three"}})[0] == 201
    old = shared.api("GET", f"{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact")
    assert names(old) == ["one", "two"]
    assert (old[1]["metadata"], "data" in old[1]["items"][1]) == ({"resourceVersion": then}, False)
    everywhere = shared.api("GET", f"/api/v1/configmaps?resourceVersion={then}&resourceVersionMatch=Exact")
    assert names(everywhere) == ["one", "two"]
    assert names(shared.api("GET", f"{MAPS}?resourceVersion={then}")) == ["three", "two"]
    assert shared.api("DELETE", MAPS)[0] == 200


@pytest.mark.lab
def test_a_future_version(shared: Any) -> None:
    status, answer = shared.api("GET", f"{MAPS}?resourceVersion=99999999")
    assert (status, answer["reason"], answer["details"]["retryAfterSeconds"]) == (504, "Timeout", 1)
    assert answer["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.lab
def test_a_list_with_selector_has_no_remaining_item_count(shared: Any) -> None:
    assert shared.api("GET", "/api/v1/nodes?limit=1")[1]["metadata"]["remainingItemCount"] == 2
    metadata = shared.api("GET", "/api/v1/nodes?limit=1&labelSelector=kubernetes.io/os%3Dlinux")[1]["metadata"]
    assert ("continue" in metadata, "remainingItemCount" in metadata) == (True, False)


@pytest.mark.lab
@pytest.mark.parametrize(("path", "kind"), [("", "PartialObjectMetadataList"), ("/w1", "PartialObjectMetadata")])
def test_partial_object_metadata(shared: Any, path: str, kind: str) -> None:
    accept = PARTIAL.format("" if path else "List")
    status, answer = shared.api("GET", f"/api/v1/nodes{path}", Accept=accept)
    assert (status, answer["kind"], answer["apiVersion"]) == (200, kind, "meta.k8s.io/v1")
    for item in answer.get("items", [answer]):
        assert set(item) == {"kind", "apiVersion", "metadata"}
    status, answer = shared.api("GET", f"/api/v1/nodes{path}", Accept=PARTIAL.format("List" if path else ""))
    assert (status, answer["reason"]) == (406, "NotAcceptable")


@pytest.mark.lab
def test_objects_in_table_rows(shared: Any) -> None:
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    path = "/api/v1/nodes?fieldSelector=metadata.name%3Dw1"
    for include, kind in (("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "Node")):
        query = f"&includeObject={include}" if include else ""
        (row,) = shared.api("GET", path + query, **accept)[1]["rows"]
        assert (row["cells"][0], row["object"]["kind"]) == ("w1", kind)
    (row,) = shared.api("GET", path + "&includeObject=None", **accept)[1]["rows"]
    assert row["object"] is None
    assert shared.api("GET", path + "&includeObject=Half", **accept)[0] == 400


@pytest.mark.lab
def test_not_found_has_the_name(shared: Any) -> None:
    answer = shared.api("GET", "/apis/apps/v1/namespaces/default/deployments/nope")[1]
    assert answer["message"] == 'deployments.apps "nope" not found'
    assert answer["details"] == {"name": "nope", "group": "apps", "kind": "deployments"}


def test_a_page_expires() -> None:
    sim = SimClock(0.0, 1)
    pages = Paginator(sim)
    token = pages.issue_token(7, [{"metadata": {"name": "x"}}])
    sim.run_until(300.0)
    assert pages.resume(token) == (7, [{"metadata": {"name": "x"}}])
    sim.run_until(301.0)
    with pytest.raises(ApiError) as refused:
        pages.resume(token)
    assert (refused.value.code, refused.value.reason) == (410, "Expired")


@pytest.mark.parametrize("content", [b"x", b"[]", b"[1]", b"[[1], 2]", b'["a", 2]', b"{}", b"[1, null]", b"\xff", b"7"])
def test_an_invalid_token(content: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        Paginator(SimClock(0.0, 1)).resume(base64.urlsafe_b64encode(content).decode())
    assert refused.value.code == 400


def test_a_token_of_another_server() -> None:
    with pytest.raises(ApiError) as refused:
        Paginator(SimClock(1000.0, 1)).resume(base64.urlsafe_b64encode(json.dumps([99, 7]).encode()).decode())
    assert refused.value.code == 410
