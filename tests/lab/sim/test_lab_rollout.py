"""Rolling updates of Deployments: pkg/controller/deployment, numbers of its unit tests."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.controllers.replicaset import Limits, limits_of, new_replicas, old_replicas
from tests.kit.simkit import History, Object, events, run, spec, started, workload


def _demo(replicas: int = 4, **more: Any) -> tuple[Cluster, History]:
    cluster, history = started(spec(workers=2), settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    cluster.create_object("deployments", workload("web", replicas=replicas, stops=3, **more))
    run(cluster, 5.0)
    return cluster, history


def _web(cluster: Cluster) -> Object:
    found = cluster.store.get("deployments", "demo", "web")
    assert found is not None
    return found


def _change(cluster: Cluster, image: str) -> None:
    obj: Object = clone(_web(cluster))
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = image
    cluster.update_object("deployments", obj)


def _sets(cluster: Cluster) -> dict[str, int]:
    """Replicas by image."""
    sets = cluster.store.list("replicasets", "demo")
    return {item["spec"]["template"]["spec"]["containers"][0]["image"]: item["spec"]["replicas"] for item in sets}


def _images(cluster: Cluster) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in cluster.store.list("pods", "demo")}


def _counts(history: History, since: float) -> list[tuple[int, int]]:
    """(pods without deletionTimestamp, available pods) after each write of the Deployment's status."""
    rows = history.since(since, "deployments")
    return [(o["status"].get("replicas", 0), o["status"].get("availableReplicas", 0)) for _, _, o in rows]


@pytest.mark.parametrize(
    ("replicas", "rolling", "expected"),
    [
        (4, {"maxSurge": "25%", "maxUnavailable": "25%"}, (1, 1)),
        (10, {"maxSurge": "25%", "maxUnavailable": "25%"}, (3, 2)),
        (1, {"maxSurge": "25%", "maxUnavailable": "25%"}, (1, 0)),
        (3, {"maxSurge": 0, "maxUnavailable": "25%"}, (0, 1)),  # not both 0
        (3, {"maxSurge": 2, "maxUnavailable": 5}, (2, 3)),
    ],
)
def test_limits(replicas: int, rolling: Object, expected: tuple[int, int]) -> None:
    limits = limits_of({"spec": {"replicas": replicas, "strategy": {"rollingUpdate": rolling}}})
    assert (limits.surge, limits.unavailable) == expected


@pytest.mark.parametrize(
    ("surge", "new", "total", "expected"),
    [(0, 0, 10, 0), (2, 0, 10, 2), (2, 0, 5, 7), (3, 0, 10, 3), (2, 2, 12, 2), (2, 10, 10, 10), (0, 12, 12, 10)],
)
def test_new_replicas(surge: int, new: int, total: int, expected: int) -> None:
    assert new_replicas(Limits(10, surge, 0), new, total) == expected


def _set(name: str, replicas: int, available: int) -> Object:
    return {"metadata": {"name": name}, "spec": {"replicas": replicas}, "status": {"availableReplicas": available}}


@pytest.mark.parametrize(
    ("unavailable", "old", "new", "expected"),
    [
        (0, (10, 10), (0, 0), 10),
        (2, (10, 10), (0, 0), 8),
        (2, (10, 8), (2, 0), 8),  # unhealthy ones first, and no healthy one
        (2, (8, 8), (2, 0), 8),
        (2, (8, 8), (2, 2), 6),
        (2, (10, 10), (2, 2), 6),
        (0, (10, 0), (2, 0), 10),
        (2, (10, 0), (2, 2), 6),
    ],
)
def test_old_replicas(unavailable: int, old: tuple[int, int], new: tuple[int, int], expected: int) -> None:
    limits = Limits(10, 0, unavailable)
    assert old_replicas(limits, _set("new", *new), [_set("old", *old)])["old"] == expected


@pytest.mark.parametrize(
    ("rolling", "most", "least"),
    [({"maxSurge": 1, "maxUnavailable": 0}, 5, 4), ({"maxSurge": 0, "maxUnavailable": 1}, 4, 3)],
)
def test_roll_out_stays_within_its_limits_and_ends_with_the_new_template(
    rolling: Object, most: int, least: int
) -> None:
    cluster, history = _demo(strategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    begin = cluster.sim.now
    _change(cluster, "busybox:2")
    run(cluster, 2.0)
    assert len(_sets(cluster)) == 2
    run(cluster, 58.0)
    assert _sets(cluster) == {"busybox:1.36": 0, "busybox:2": 4}
    assert _images(cluster) == {"busybox:2"}
    counts = _counts(history, begin)
    assert max(pods for pods, _ in counts) == most
    assert min(available for _, available in counts) == least
    status = _web(cluster)["status"]
    assert (status["updatedReplicas"], status["replicas"], status["observedGeneration"]) == (4, 4, 2)
    texts = [event["message"] for event in events(cluster, "ScalingReplicaSet")]
    assert any(text.endswith("from 4 to 3") for text in texts)


def test_earlier_template_reuses_its_set() -> None:
    cluster, _ = _demo()
    for image in ("busybox:2", "busybox:1.36"):
        _change(cluster, image)
        run(cluster, 40.0)
    assert _sets(cluster) == {"busybox:1.36": 4, "busybox:2": 0}
    revisions = {
        item["spec"]["template"]["spec"]["containers"][0]["image"]: item["metadata"]["annotations"][
            "deployment.kubernetes.io/revision"
        ]
        for item in cluster.store.list("replicasets", "demo")
    }
    assert revisions == {"busybox:1.36": "3", "busybox:2": "2"}


def test_change_during_a_roll_out_switches_to_the_newest() -> None:
    cluster, _ = _demo()
    _change(cluster, "busybox:2")
    run(cluster, 0.8)
    _change(cluster, "busybox:3")
    run(cluster, 60.0)
    assert _sets(cluster) == {"busybox:1.36": 0, "busybox:2": 0, "busybox:3": 4}


def test_recreate_ends_every_old_pod_first() -> None:
    cluster, history = _demo(strategy={"type": "Recreate"})
    begin = cluster.sim.now
    _change(cluster, "busybox:2")
    run(cluster, 30.0)
    rows = history.since(begin, "pods")
    ended = max(
        t for t, type_, o in rows if type_ == "MODIFIED" and o["spec"]["containers"][0]["image"] == "busybox:1.36"
    )
    began = min(t for t, type_, o in rows if type_ == "ADDED")
    assert began > 3.0
    assert ended - 1.0 < began
    assert _images(cluster) == {"busybox:2"}


def test_old_sets_beyond_the_history_limit_are_deleted() -> None:
    cluster, _ = _demo(replicas=1, revisionHistoryLimit=1)
    for number in range(2, 5):
        _change(cluster, f"busybox:{number}")
        run(cluster, 30.0)
    assert _sets(cluster) == {"busybox:3": 0, "busybox:4": 1}


def test_roll_out_that_cannot_run_stops_within_its_limits() -> None:
    cluster, _ = _demo()
    obj: Object = clone(_web(cluster))
    obj["spec"]["template"]["spec"]["nodeSelector"] = {"no": "where"}
    cluster.update_object("deployments", obj)
    run(cluster, 120.0)
    status = _web(cluster)["status"]
    assert (status["availableReplicas"], status["updatedReplicas"], status["replicas"]) == (3, 2, 5)
    conditions = {item["type"]: (item["status"], item["reason"]) for item in status["conditions"]}
    assert conditions["Available"] == ("True", "MinimumReplicasAvailable")
    assert conditions["Progressing"][1] == "ReplicaSetUpdated"


@pytest.mark.parametrize(
    "body",
    [
        {"strategy": {"type": "Canary"}},
        {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "some"}}},
        {"minReadySeconds": -5},
        {"minReadySeconds": "5"},
    ],
)
def test_invalid_or_unsimulated_fields_are_rejected(body: Object) -> None:
    with pytest.raises(InvalidError):
        _demo(**body)
