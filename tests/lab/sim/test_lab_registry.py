"""Writes to the API server: defaults, validation, generations, deletion."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.registry import ForbiddenError
from chaos.lab.apiserver.store import ConflictError, NotFoundError, clone
from chaos.lab.cluster import Cluster
from tests.kit.simkit import Object, spec, workload


def _cluster() -> Cluster:
    """A control plane without a running clock."""
    cluster = Cluster(spec())
    cluster.start()
    return cluster


def _pod(**more: Any) -> Object:
    body = {"containers": [{"name": "c", "image": "busybox"}]} | more.pop("spec", {})
    return {"metadata": {"name": "p", "namespace": "default"} | more, "spec": body}


def _bound(cluster: Cluster, **more: Any) -> Object:
    return cluster.create_object(
        "pods", _pod(**more, spec={"nodeName": "ra-worker", "terminationGracePeriodSeconds": 9})
    )


def test_pod_defaults() -> None:
    pod = _cluster().create_object("pods", _pod())
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert (pod["spec"]["priority"], pod["spec"]["terminationGracePeriodSeconds"]) == (0, 30)
    assert pod["metadata"]["generation"] == 1
    assert [(t["key"], t["effect"], t["tolerationSeconds"]) for t in pod["spec"]["tolerations"]] == [
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    ]


def test_empty_maps_of_metadata_are_dropped() -> None:
    """A map emptied by a patch equals a missing one, so the template and the hash of its pods do not change."""
    cluster = _cluster()
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}
    spec_ = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    created = cluster.create_object("deployments", {"metadata": {"name": "web"}, "spec": spec_})
    changed = clone(created)
    changed["metadata"]["annotations"] = {}
    changed["spec"]["template"]["metadata"]["annotations"] = {}
    updated = cluster.update_object("deployments", changed)
    assert (updated["spec"], updated["metadata"]["generation"]) == (created["spec"], 1)
    assert "annotations" not in updated["metadata"]


@pytest.mark.parametrize(
    ("toleration", "added"),
    [
        ({"operator": "Exists"}, 0),
        ({"operator": "Exists", "effect": "NoExecute"}, 0),
        ({"operator": "Exists", "effect": "NoSchedule"}, 2),
        ({"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, 1),
        ({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}, 2),
    ],
)
def test_default_tolerations_unless_tolerated_already(toleration: Object, added: int) -> None:
    pod = _cluster().create_object("pods", _pod(spec={"tolerations": [toleration]}))
    assert len(pod["spec"]["tolerations"]) == 1 + added


@pytest.mark.parametrize(
    ("name", "value"), [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)]
)
def test_priority_from_class(name: str, value: int) -> None:
    pod = _cluster().create_object("pods", _pod(spec={"priorityClassName": name}))
    assert pod["spec"]["priority"] == value


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"spec": {"containers": []}}, "spec.containers"),
        ({"spec": {"containers": [{"image": "x"}]}}, "name: Required"),
        ({"spec": {"containers": [{"name": "c", "readinessProbe": {"tcpSocket": {"port": 1}}}]}}, "readinessProbe"),
        ({"spec": {"containers": [{"name": "c", "lifecycle": {"preStop": {"exec": {}}}}]}}, "preStop.sleep"),
        ({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "lots"}}}]}}, "requests.cpu: 'lots'"),
        ({"spec": {"initContainers": [{"name": "i"}]}}, "initContainers"),
        ({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]}}, "persistentVolumeClaim"),
        ({"spec": {"schedulerName": "mine"}}, "default-scheduler"),
        ({"spec": {"priorityClassName": "none"}}, "no PriorityClass"),
        ({"spec": {"topologySpreadConstraints": [{"minDomains": 3}]}}, "minDomains"),
        ({"annotations": {"lab.nodefall.dev/stop-after": "1"}}, "unknown annotation"),
        ({"annotations": {"lab.nodefall.dev/stops-after": "soon"}}, "not a number"),
        ({"annotations": {"lab.nodefall.dev/stops-after": "-1"}}, "out of range"),
        ({"annotations": {"lab.nodefall.dev/starts-after": "-1"}}, "out of range"),
        ({"annotations": {"lab.nodefall.dev/exit-code": "256"}}, "out of range"),
        ({"annotations": {"lab.nodefall.dev/ignores-sigterm": "yes"}}, "neither true nor false"),
        ({"name": ""}, "metadata.name"),
    ],
)
def test_rejected_pods(more: dict[str, Any], message: str) -> None:
    cluster = _cluster()
    with pytest.raises(InvalidError, match=message):
        cluster.create_object("pods", _pod(**more))
    assert cluster.store.get("pods", "default", "p") is None


def test_generated_names_differ() -> None:
    cluster = _cluster()
    names = {cluster.create_object("pods", _pod(name="", generateName="web-"))["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


def test_create_twice_and_in_a_missing_namespace() -> None:
    cluster = _cluster()
    cluster.create_object("pods", _pod())
    with pytest.raises(ConflictError, match="already exists"):
        cluster.create_object("pods", _pod())
    with pytest.raises(NotFoundError, match="nowhere"):
        cluster.create_object("pods", _pod(namespace="nowhere"))


def test_the_argument_is_not_changed() -> None:
    given = _pod()
    before = clone(given)
    _cluster().create_object("pods", given)
    assert given == before


def test_delete_of_a_bound_pod_only_sets_the_deletion_timestamp() -> None:
    cluster = _cluster()
    _bound(cluster)
    left = cluster.delete_object("pods", "default", "p")
    assert (left["metadata"]["deletionGracePeriodSeconds"], left["metadata"]["generation"]) == (9, 2)
    assert cluster.store.get("pods", "default", "p") == left


def test_grace_of_a_terminating_pod_only_gets_shorter() -> None:
    cluster = _cluster()
    _bound(cluster)
    cluster.delete_object("pods", "default", "p", 20)
    graces = [
        cluster.delete_object("pods", "default", "p", grace)["metadata"]["deletionGracePeriodSeconds"]
        for grace in (30, 5, 9)
    ]
    assert graces == [20, 5, 5]


def test_pods_with_grace_zero_unbound_and_terminal_ones_are_removed_at_once() -> None:
    cluster = _cluster()
    _bound(cluster)
    cluster.delete_object("pods", "default", "p", 0)
    cluster.create_object("pods", _pod())
    cluster.delete_object("pods", "default", "p")
    pod: Object = clone(_bound(cluster))
    pod["status"]["phase"] = "Failed"
    cluster.update_object("pods", pod, "status")
    cluster.delete_object("pods", "default", "p")
    assert cluster.store.get("pods", "default", "p") is None


def test_an_object_with_a_finalizer_remains_until_its_removal() -> None:
    cluster = _cluster()
    pod: Object = clone(_bound(cluster, finalizers=["example.com/hold"]))
    held: Object = clone(cluster.delete_object("pods", "default", "p", 0))
    assert cluster.store.get("pods", "default", "p") is not None
    held["metadata"]["finalizers"] = []
    cluster.update_object("pods", held)
    assert cluster.store.get("pods", "default", "p") is None
    assert pod["metadata"]["finalizers"] == ["example.com/hold"]


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_preconditions(field: str) -> None:
    cluster = _cluster()
    pod = _bound(cluster)
    with pytest.raises(ConflictError, match=f"(?i)the {field} in the precondition"):
        cluster.delete_object("pods", "default", "p", None, {field: "other"})
    cluster.delete_object("pods", "default", "p", None, {field: pod["metadata"][field]})


def test_generation_follows_the_spec_only() -> None:
    cluster = _cluster()
    obj: Object = clone(cluster.create_object("deployments", workload("web", ns="default", replicas=2)))
    obj["metadata"]["labels"] = {"a": "b"}
    assert cluster.update_object("deployments", obj)["metadata"]["generation"] == 1
    obj["spec"]["replicas"] = 3
    assert cluster.update_object("deployments", obj)["metadata"]["generation"] == 2


def test_an_update_ignores_the_status_and_a_status_update_the_spec() -> None:
    cluster = _cluster()
    obj: Object = clone(cluster.create_object("deployments", workload("web", ns="default", replicas=2)))
    obj["status"] = {"replicas": 9}
    assert cluster.update_object("deployments", obj)["status"] == {}
    obj["spec"]["replicas"] = 5
    updated = cluster.update_object("deployments", obj, "status")
    assert (updated["spec"]["replicas"], updated["status"]) == (2, {"replicas": 9})


def test_an_update_without_the_defaults_changes_nothing() -> None:
    """A client that applies its manifest again does not send the defaults of the server."""
    cluster = _cluster()
    manifest = workload("web", ns="default", replicas=2)
    created = cluster.create_object("deployments", manifest)
    assert cluster.update_object("deployments", manifest) == created


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({}, {}, "BestEffort"),
        ({"cpu": "10m"}, {}, "Burstable"),
        ({}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}, "Burstable"),
    ],
)
def test_quality_of_service(requests: dict[str, str], limits: dict[str, str], expected: str) -> None:
    container = {"name": "c", "resources": {"requests": requests, "limits": limits}}
    pod = _cluster().create_object("pods", _pod(spec={"containers": [container]}))
    assert pod["status"]["qosClass"] == expected


@pytest.mark.parametrize(
    ("plural", "key", "value"),
    [
        ("statefulsets", "podManagementPolicy", "Parallel"),
        ("statefulsets", "serviceName", "other"),
        ("statefulsets", "selector", {"matchLabels": {"a": "b"}}),
        ("daemonsets", "updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}),
        ("daemonsets", "updateStrategy", {"type": "Recreate"}),
        ("statefulsets", "updateStrategy", {"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
        ("statefulsets", "updateStrategy", {"rollingUpdate": {"partition": -1}}),
        ("daemonsets", "updateStrategy", {"rollingUpdate": {"maxUnavailable": 0}}),
    ],
)
def test_invalid_or_unsimulated_fields_are_rejected_on_update(plural: str, key: str, value: Any) -> None:
    cluster = _cluster()
    changed: Object = clone(cluster.create_object(plural, workload("web", ns="default")))
    changed["spec"][key] = value
    if key == "selector":
        changed["spec"]["template"]["metadata"]["labels"]["a"] = "b"
    with pytest.raises(InvalidError):
        cluster.update_object(plural, changed)


def test_unknown_subresource_is_rejected() -> None:
    cluster = _cluster()
    obj: Object = clone(cluster.create_object("deployments", workload("web", ns="default", replicas=2)))
    with pytest.raises(InvalidError, match="scale"):
        cluster.update_object("deployments", obj, "scale")


def test_update_of_an_old_version_conflicts() -> None:
    cluster = _cluster()
    pod: Object = clone(_bound(cluster))
    pod["metadata"]["labels"] = {"a": "b"}
    with pytest.raises(ConflictError, match="modified"):
        cluster.update_object("pods", pod, expect="1")


def test_no_create_in_a_terminating_namespace() -> None:
    cluster = _cluster()
    cluster.delete_object("namespaces", "", "default")
    with pytest.raises(ForbiddenError, match="being terminated"):
        cluster.create_object("pods", _pod())


@pytest.mark.parametrize("labels", [None, {"app": "other"}])
def test_workload_must_select_its_own_template(labels: dict[str, str] | None) -> None:
    obj = workload("web", ns="default", replicas=1)
    obj["spec"]["selector"] = {"matchLabels": labels} if labels else {}
    with pytest.raises(InvalidError, match=r"spec\.selector: Required|`selector` does not match template `labels`"):
        _cluster().create_object("deployments", obj)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodeName": "ra-worker2"}, "pod updates may not change fields other than"),
        ({"restartPolicy": "Never"}, "pod updates may not change fields other than"),
        ({"containers": []}, "pod updates may not change fields other than"),
        ({"containers": [{"name": "c", "image": "other", "resources": {}}]}, "a new image in a running pod"),
        ({"tolerations": []}, "existing toleration can not be modified"),
    ],
)
def test_immutable_fields_of_a_pod(change: Object, message: str) -> None:
    cluster = _cluster()
    pod: Object = clone(_bound(cluster))
    pod["spec"] |= change
    with pytest.raises(InvalidError, match=message):
        cluster.update_object("pods", pod)


def test_mutable_fields_of_a_pod() -> None:
    cluster = _cluster()
    pod: Object = clone(_bound(cluster))
    pod["spec"]["tolerations"][0]["tolerationSeconds"] = 9
    pod["spec"]["tolerations"].append({"key": "mine", "operator": "Exists"})
    assert cluster.update_object("pods", pod)["spec"]["tolerations"] == pod["spec"]["tolerations"]
