"""Roll-outs of StatefulSets and DaemonSets, revisions; paused Deployments, minReadySeconds, the progress deadline."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.controllers.daemon_pods import max_unavailable, pods_to_replace
from chaos.lab.controllers.workload import template_of
from tests.kit.simkit import History, Object, run, spec, started, workload


def _demo(plural: str, settle: float = 12.0, **more: Any) -> tuple[Cluster, History]:
    cluster, history = started(spec(workers=3), settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    cluster.create_object(plural, workload("web", stops=1, **more))
    run(cluster, settle)
    return cluster, history


def _get(cluster: Cluster, plural: str) -> Any:
    found = cluster.store.get(plural, "demo", "web")
    assert found is not None
    return found


def _edit(cluster: Cluster, plural: str, image: str = "", **body: Any) -> None:
    obj: Object = clone(_get(cluster, plural))
    if image:
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = image
    obj["spec"] |= body
    cluster.update_object(plural, obj)


def _pods(cluster: Cluster) -> list[Object]:
    return list(cluster.store.list("pods", "demo"))


def _images(cluster: Cluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in _pods(cluster)}


def _progressing(cluster: Cluster) -> tuple[str, str, str]:
    conditions = {item["type"]: item for item in _get(cluster, "deployments")["status"]["conditions"]}
    found = conditions["Progressing"]
    return found["status"], found["reason"], found["message"]


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_stateful_set_rolls_out_one_by_one_from_the_last(policy: str) -> None:
    cluster, history = _demo("statefulsets", replicas=3, podManagementPolicy=policy)
    before = _get(cluster, "statefulsets")["status"]
    assert before["currentRevision"] == before["updateRevision"]
    begin = cluster.sim.now
    _edit(cluster, "statefulsets", "busybox:2")
    run(cluster, 2.0)
    middle = _get(cluster, "statefulsets")["status"]
    assert middle["currentRevision"] == before["currentRevision"] != middle["updateRevision"]
    run(cluster, 40.0)
    status = _get(cluster, "statefulsets")["status"]
    assert status["currentRevision"] == status["updateRevision"] == middle["updateRevision"]
    assert (status["updatedReplicas"], status["currentReplicas"], status["readyReplicas"]) == (3, 3, 3)
    assert set(_images(cluster).values()) == {"busybox:2"}
    assert {pod["metadata"]["labels"]["controller-revision-hash"] for pod in _pods(cluster)} == {
        status["updateRevision"]
    }
    made = [obj["metadata"]["name"] for _, type_, obj in history.since(begin, "pods") if type_ == "ADDED"]
    assert made == ["web-2", "web-1", "web-0"]
    ready = [obj["status"].get("readyReplicas", 0) for _, _, obj in history.since(begin, "statefulsets")]
    assert min(ready) == 2


def test_ordinals_below_the_partition_stay_current_even_when_replaced() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    cluster, _ = _demo("statefulsets", replicas=3, updateStrategy=strategy)
    _edit(cluster, "statefulsets", "busybox:2")
    run(cluster, 20.0)
    cluster.delete_object("pods", "demo", "web-0")
    run(cluster, 10.0)
    assert _images(cluster) == {"web-0": "busybox:1.36", "web-1": "busybox:1.36", "web-2": "busybox:2"}
    status = _get(cluster, "statefulsets")["status"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
    assert status["currentRevision"] != status["updateRevision"]
    strategy["rollingUpdate"] = {"partition": 0}
    _edit(cluster, "statefulsets", updateStrategy=strategy)
    run(cluster, 30.0)
    assert set(_images(cluster).values()) == {"busybox:2"}


@pytest.mark.parametrize("plural", ["statefulsets", "daemonsets"])
def test_on_delete_waits_for_a_delete(plural: str) -> None:
    cluster, _ = _demo(plural, updateStrategy={"type": "OnDelete"})
    _edit(cluster, plural, "busybox:2")
    run(cluster, 30.0)
    assert set(_images(cluster).values()) == {"busybox:1.36"}
    for pod in _pods(cluster):
        cluster.delete_object("pods", "demo", pod["metadata"]["name"])
    run(cluster, 10.0)
    assert set(_images(cluster).values()) == {"busybox:2"}


def test_stateful_set_roll_out_stops_at_an_unready_pod() -> None:
    cluster, _ = _demo("statefulsets", replicas=3)
    obj: Object = clone(_get(cluster, "statefulsets"))
    obj["spec"]["template"]["spec"]["nodeSelector"] = {"no": "where"}
    cluster.update_object("statefulsets", obj)
    run(cluster, 60.0)
    phases = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in _pods(cluster)}
    assert phases == {"web-0": "Running", "web-1": "Running", "web-2": "Pending"}


@pytest.mark.parametrize(("most", "least"), [(1, 2), (2, 1), ("34%", 1), ("33%", 2)])
def test_daemon_set_stays_within_max_unavailable(most: int | str, least: int) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}}
    cluster, history = _demo("daemonsets", updateStrategy=strategy)
    begin = cluster.sim.now
    _edit(cluster, "daemonsets", "busybox:2")
    run(cluster, 40.0)
    assert list(_images(cluster).values()) == ["busybox:2"] * 3
    status = _get(cluster, "daemonsets")["status"]
    assert (status["updatedNumberScheduled"], status["numberAvailable"]) == (3, 3)
    assert status["observedGeneration"] == 2
    available = [obj["status"].get("numberAvailable", 0) for _, _, obj in history.since(begin, "daemonsets")]
    assert min(available) == least
    labels = [pod["metadata"]["labels"] for pod in _pods(cluster)]
    assert {item["pod-template-generation"] for item in labels} == {"2"}
    assert len({item["controller-revision-hash"] for item in labels}) == 1


def _pod(revision: str, *, ready: bool = True, deleting: bool = False) -> Object:
    metadata: Object = {"name": revision, "labels": {"controller-revision-hash": revision}}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "ready": ready}


@pytest.mark.parametrize(
    ("nodes", "most", "expected"),
    [
        ([[_pod("old")], [_pod("old")], [_pod("old")]], 1, 1),
        ([[_pod("old")], [_pod("old")], [_pod("new")]], 2, 2),
        ([[_pod("new", ready=False)], [_pod("old")]], 1, 0),
        ([[], [_pod("old")]], 1, 0),
        ([[_pod("old", deleting=True)], [_pod("old")]], 1, 0),
        ([[_pod("old"), _pod("new")], [_pod("old")]], 1, 0),
        ([[_pod("old", ready=False)], [_pod("old", ready=False)], [_pod("old")]], 1, 3),
        ([[_pod("new")], [_pod("new")]], 1, 0),
    ],
)
def test_pods_to_replace(nodes: list[list[Object]], most: int, expected: int) -> None:
    assert len(pods_to_replace(nodes, "new", most, lambda pod: bool(pod["ready"]))) == expected


@pytest.mark.parametrize(("value", "desired", "expected"), [(2, 10, 2), ("25%", 10, 3), ("1%", 3, 1), ("100%", 3, 3)])
def test_percentages_of_daemon_pods_round_up(value: int | str, desired: int, expected: int) -> None:
    owner = {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": value}}}}
    assert max_unavailable(owner, desired) == expected


@pytest.mark.parametrize("plural", ["statefulsets", "daemonsets"])
def test_revisions_are_saved_reused_and_trimmed(plural: str) -> None:
    cluster, _ = _demo(plural, revisionHistoryLimit=1)
    for image in ("busybox:2", "busybox:3", "busybox:1.36", "busybox:3"):
        _edit(cluster, plural, image)
        run(cluster, 25.0)
    revisions = {item["revision"]: item for item in cluster.store.list("controllerrevisions", "demo")}
    images = {key: template_of(item)["spec"]["containers"][0]["image"] for key, item in revisions.items()}
    assert images == {4: "busybox:1.36", 5: "busybox:3"}
    assert revisions[5]["data"]["spec"]["template"]["$patch"] == "replace"
    cluster.delete_object(plural, "demo", "web")
    run(cluster, 5.0)
    assert list(cluster.store.list("controllerrevisions", "demo")) == []


def test_set_deleted_and_recreated_at_once() -> None:
    cluster, _ = _demo("statefulsets")
    cluster.delete_object("statefulsets", "demo", "web")
    cluster.create_object("statefulsets", workload("web"))
    run(cluster, 15.0)
    (pod,) = _pods(cluster)
    status = _get(cluster, "statefulsets")["status"]
    assert pod["metadata"]["labels"]["controller-revision-hash"] == status["currentRevision"]
    assert len(list(cluster.store.list("controllerrevisions", "demo"))) == 1


def test_paused_deployment_scales_and_rolls_out_only_when_resumed() -> None:
    cluster, _ = _demo("deployments", replicas=2)
    _edit(cluster, "deployments", "busybox:2", paused=True, replicas=3)
    run(cluster, 20.0)
    assert list(_images(cluster).values()) == ["busybox:1.36"] * 3
    assert _progressing(cluster) == ("Unknown", "DeploymentPaused", "Deployment is paused")
    assert _get(cluster, "deployments")["status"].get("updatedReplicas") is None
    _edit(cluster, "deployments", paused=False)
    run(cluster, 20.0)
    assert list(_images(cluster).values()) == ["busybox:2"] * 3
    assert _progressing(cluster)[1] == "NewReplicaSetAvailable"


def test_initially_paused_deployment_has_no_set() -> None:
    cluster, _ = _demo("deployments", replicas=2, paused=True)
    assert list(cluster.store.list("replicasets", "demo")) == []


@pytest.mark.parametrize(("plural", "key"), [("statefulsets", "availableReplicas"), ("daemonsets", "numberAvailable")])
def test_roll_out_waits_for_min_ready_seconds(plural: str, key: str) -> None:
    more: Any = {"replicas": 2} if plural == "statefulsets" else {}
    cluster, history = _demo(plural, settle=40.0, minReadySeconds=8, **more)
    assert _get(cluster, plural)["status"][key] == (2 if more else 3)
    begin = cluster.sim.now
    _edit(cluster, plural, "busybox:2")
    run(cluster, 60.0)
    made = [when for when, type_, _ in history.since(begin, "pods") if type_ == "ADDED"]
    assert min(after - before for before, after in pairwise(made)) > 7


def test_deployment_with_min_ready_seconds() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    cluster, history = _demo("deployments", replicas=2, minReadySeconds=8, strategy=rolling)
    status = _get(cluster, "deployments")["status"]
    assert (status["readyReplicas"], status["availableReplicas"]) == (2, 2)
    begin = cluster.sim.now
    _edit(cluster, "deployments", "busybox:2")
    run(cluster, 40.0)
    made = [when for when, type_, _ in history.since(begin, "pods") if type_ == "ADDED"]
    assert len(made) == 2
    assert made[1] - made[0] > 7  # conditions have whole seconds
    _edit(cluster, "deployments", minReadySeconds=0)
    run(cluster, 2.0)
    newest = max(
        cluster.store.list("replicasets", "demo"),
        key=lambda item: item["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
    )
    assert "minReadySeconds" not in newest["spec"]


def test_progress_deadline_is_reported_once_exceeded() -> None:
    cluster, _ = _demo("deployments", replicas=2, progressDeadlineSeconds=30)
    obj: Object = clone(_get(cluster, "deployments"))
    obj["spec"]["template"]["spec"]["nodeSelector"] = {"no": "where"}
    cluster.update_object("deployments", obj)
    run(cluster, 25.0)
    assert _progressing(cluster)[:2] == ("True", "ReplicaSetUpdated")
    run(cluster, 15.0)
    status, reason, message = _progressing(cluster)
    assert (status, reason) == ("False", "ProgressDeadlineExceeded")
    assert message.endswith("has timed out progressing.")
    _edit(cluster, "deployments", "busybox:2")
    obj = clone(_get(cluster, "deployments"))
    del obj["spec"]["template"]["spec"]["nodeSelector"]
    cluster.update_object("deployments", obj)
    run(cluster, 25.0)
    assert _progressing(cluster)[1] == "NewReplicaSetAvailable"
