"""Watches over real connections, and the official client."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import kubernetes
import pytest

pytestmark = pytest.mark.lab
MAPS = "/api/v1/namespaces/default/configmaps"


def version(lab: Any) -> str:
    return str(lab.api("GET", MAPS)[1]["metadata"]["resourceVersion"])


def make(lab: Any, name: str, **labels: str) -> None:
    assert lab.api("POST", MAPS, {"metadata": {"name": name, "labels": labels}})[0] == 201


def label(lab: Any, name: str, **labels: str | None) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    assert lab.api("PATCH", f"{MAPS}/{name}", {"metadata": {"labels": labels}}, **headers)[0] == 200


def summary(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


def test_events_since_a_version(shared: Any) -> None:
    since = version(shared)
    make(shared, "a")
    label(shared, "a", x="1")
    shared.api("DELETE", MAPS + "/a")
    events = list(shared.watch(f"{MAPS}?watch=true&resourceVersion={since}", 3))
    assert [summary(event) for event in events] == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert {event["object"]["kind"] for event in events} == {"ConfigMap"}


def test_a_selection_is_entered_and_left(shared: Any) -> None:
    since = version(shared)
    make(shared, "b", app="no")
    label(shared, "b", app="yes")
    label(shared, "b", more="1")
    label(shared, "b", app=None)
    shared.api("DELETE", MAPS + "/b")
    events = list(shared.watch(f"{MAPS}?watch=1&labelSelector=app%3Dyes&resourceVersion={since}", 3))
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[2]["object"]["metadata"]["labels"] == {"app": "yes", "more": "1"}


def test_a_watch_without_version_starts_with_existing_objects(shared: Any) -> None:
    for start in ("", "&resourceVersion=0"):
        events = list(shared.watch(f"/api/v1/nodes?watch=true{start}", 3))
        assert [summary(event) for event in events] == [("ADDED", "cp"), ("ADDED", "w1"), ("ADDED", "w2")]
    path = "/api/v1/nodes?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    events = list(shared.watch(path, 4))
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "ADDED", "BOOKMARK"]
    assert events[3]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}

    assert list(shared.watch(path + "&resourceVersion=1&fieldSelector=metadata.name%3Dw1", 2)) == [
        events[1],
        {**events[3], "object": {**events[3]["object"], "metadata": ANY}},
    ]
    legacy = list(shared.watch("/api/v1/nodes?watch=true&allowWatchBookmarks=true", 4))
    assert legacy[3]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("resourceVersion=x", 500, 'resourceVersion: Invalid value: "x"'),
        ("timeoutSeconds=soon", 400, 'parsing "soon": invalid syntax'),
        ("sendInitialEvents=true", 422, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        ("sendInitialEvents=false&resourceVersionMatch=Exact", 422, 'Unsupported value: "Exact"'),
        ("resourceVersionMatch=NotOlderThan", 422, "forbidden for watch unless sendInitialEvents is provided"),
        ("sendInitialEvents=1&resourceVersionMatch=NotOlderThan&continue=x", 422, "forbidden when continue"),
        ("labelSelector=a==b==c", 400, "unable to parse requirement"),
        ("fieldSelector=spec.x=1", 400, "field label not supported"),
    ],
)
def test_invalid_watch_options(shared: Any, query: str, code: int, message: str) -> None:
    status, body = shared.api("GET", f"{MAPS}?watch=true&{query}")
    assert (status, body["kind"], body["code"]) == (code, "Status", code)
    assert message in body["message"]


def test_a_future_version(shared: Any) -> None:
    ahead = int(version(shared)) + 3
    query = f"{MAPS}?watch=true&fieldSelector=metadata.name%3Dfuture"
    listed = f"{query}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={ahead + 10**6}"
    (event,) = shared.watch(listed)
    status = event["object"]
    assert (event["type"], status["code"], status["reason"]) == ("ERROR", 504, "Timeout")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    make(shared, "future")
    for number in range(4):
        label(shared, "future", n=str(number))
    events = list(shared.watch(f"{query}&resourceVersion={ahead}", 1))
    assert int(events[0]["object"]["metadata"]["resourceVersion"]) > ahead


def watched(lab: Any, path: str) -> tuple[float, list[tuple[float, dict[str, Any]]]]:
    """Run a watch to its end while time moves: its start, and its events with their times."""
    events: list[tuple[float, dict[str, Any]]] = []
    thread = threading.Thread(target=lambda: events.extend((lab.clock.now(), event) for event in lab.watch(path)))
    with lab.clock.participant():
        begin = lab.clock.now()
        thread.start()
        while thread.is_alive():
            assert lab.clock.sleep(1)
    return begin, events


def test_no_initial_events_from_any_version(shared: Any) -> None:
    query = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=3"
    _, events = watched(shared, f"/api/v1/nodes?watch=true&labelSelector=none&{query}")
    assert [event["type"] for _, event in events] == ["BOOKMARK"]
    assert "annotations" not in events[0][1]["object"]["metadata"]


def test_too_old_is_gone(make_lab: Callable[..., Any]) -> None:
    lab = make_lab("--ring", "5")
    since = version(lab)
    make(lab, "a")
    for number in range(5):
        label(lab, "a", n=str(number))
    events = list(lab.watch(f"{MAPS}?watch=true&resourceVersion={since}"))
    assert [event["type"] for event in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert "too old resource version" in status["message"]


def test_bookmarks_every_simulated_minute_and_shortly_before_the_end(shared: Any) -> None:
    query = f"allowWatchBookmarks=true&timeoutSeconds=150&resourceVersion={version(shared)}"
    begin, events = watched(shared, f"{MAPS}?watch=true&{query}")
    assert [event["type"] for _, event in events] == ["BOOKMARK"] * 3
    times = [at for at, _ in events]
    assert times[0] >= begin + 60
    assert times[1] >= begin + 120
    assert times[2] >= begin + 148


def test_events_have_no_bookmarks(shared: Any) -> None:
    query = f"allowWatchBookmarks=true&timeoutSeconds=90&resourceVersion={version(shared)}"
    _, events = watched(shared, f"/api/v1/events?watch=true&{query}")
    assert "BOOKMARK" not in [event["type"] for _, event in events]


def test_the_official_client(shared: Any) -> None:
    official: Any = kubernetes  # its helpers are not typed
    official.config.load_kube_config(shared.facts["kubeconfig"])
    api = official.client.CoreV1Api()
    nodes = api.list_node()
    assert [node.metadata.name for node in nodes.items] == ["cp", "w1", "w2"]
    ready = [c.status for node in nodes.items for c in node.status.conditions if c.type == "Ready"]
    assert ready == ["True"] * 3
    assert api.read_namespace("kube-system").metadata.uid
    since = api.list_namespaced_config_map("default").metadata.resource_version
    api.create_namespaced_config_map(
        "default", official.client.V1ConfigMap(metadata=official.client.V1ObjectMeta(name="typed"))
    )
    api.patch_namespaced_config_map("typed", "default", {"data": {"k": "v"}})
    api.delete_namespaced_config_map("typed", "default")
    seen = []
    source = official.watch.Watch()
    for event in source.stream(api.list_namespaced_config_map, "default", resource_version=since, timeout_seconds=60):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            source.stop()
    assert seen == [("ADDED", "typed"), ("MODIFIED", "typed"), ("DELETED", "typed")]


def test_files_are_private(shared: Any) -> None:
    directory = Path(shared.facts["directory"])
    assert directory.stat().st_mode & 0o777 == 0o700
    for name in ("id_ed25519", "bmc-password", "kubeconfig.yaml", "server.key"):
        assert (directory / name).stat().st_mode & 0o777 == 0o600
