"""Attach-detach with VolumeAttachments: facts 6 and 7, table of facts 13."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.objects import is_ready
from chaos.lab.spec import ControllerSpec
from tests.kit.simkit import VICTIM, History, Object, events, node, run, spec, started, workload

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _demo(plural: str = "statefulsets", *breakages: str, **controllers: Any) -> tuple[Cluster, History]:
    """Create one pod with a volume on the victim; it may move to the other worker."""
    lab = spec(workers=2, controllers=ControllerSpec(**controllers), breakages=list(breakages))
    cluster, history = started(lab, settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    _cordon(cluster, "ra-worker2", True)
    if plural == "statefulsets":
        templates = [{"metadata": {"name": "data"}, "spec": CLAIM}]
        cluster.create_object(plural, workload("db", replicas=1, volumeClaimTemplates=templates))
    else:
        cluster.create_object(
            "persistentvolumeclaims", {"metadata": {"name": "data", "namespace": "demo"}, "spec": CLAIM}
        )
        volumes = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
        cluster.create_object(plural, workload("db", replicas=1, pod=volumes))
    run(cluster, 25.0)
    _cordon(cluster, "ra-worker2", False)
    run(cluster, 10.0)
    return cluster, history


def _cordon(cluster: Cluster, name: str, value: bool) -> None:
    obj: Object = clone(node(cluster, name))
    obj["spec"]["unschedulable"] = value
    cluster.update_object("nodes", obj)


def _taint(cluster: Cluster, effect: str) -> None:
    obj: Object = clone(node(cluster))
    obj["spec"].setdefault("taints", []).append({"key": "node.kubernetes.io/out-of-service", "effect": effect})
    cluster.update_object("nodes", obj)


def _attached(cluster: Cluster) -> dict[str, bool]:
    return {a["spec"]["nodeName"]: a["status"]["attached"] for a in cluster.store.list("volumeattachments")}


def _gone(history: History, since: float) -> float:
    """Time at which the attachment of the victim was deleted."""
    rows = history.since(since, "volumeattachments")
    return next(t for t, type_, o in rows if o["spec"]["nodeName"] == VICTIM and "deletionTimestamp" in o["metadata"])


def _running(cluster: Cluster) -> list[str]:
    pods = cluster.store.list("pods", "demo")
    return [pod["spec"]["nodeName"] for pod in pods if pod["status"]["phase"] == "Running"]


def _pod(cluster: Cluster) -> Object:
    return next(iter(cluster.store.list("pods", "demo")))


@pytest.mark.parametrize("plural", ["statefulsets", "deployments"])
def test_pod_starts_once_its_volume_is_bound_attached_and_in_use(plural: str) -> None:
    cluster, _ = _demo(plural)
    assert _running(cluster) == [VICTIM]
    (claim,) = cluster.store.list("persistentvolumeclaims", "demo")
    (volume,) = cluster.store.list("persistentvolumes")
    assert claim["status"]["phase"] == "Bound"
    assert (
        volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"] == ("data-db-0" if plural[0] == "s" else "data")
    )
    assert _attached(cluster) == {VICTIM: True}
    status = node(cluster)["status"]
    assert [item["name"] for item in status["volumesAttached"]] == status["volumesInUse"]
    assert events(cluster, "SuccessfulAttachVolume")


def test_volume_follows_its_pod() -> None:
    cluster, history = _demo()
    _cordon(cluster, VICTIM, True)
    begin = cluster.sim.now
    cluster.delete_object("pods", "demo", "db-0")
    run(cluster, 45.0)
    assert _running(cluster) == ["ra-worker2"]
    assert _attached(cluster) == {"ra-worker2": True}
    assert _gone(history, begin) <= 15.0  # the next status of the kubelet reports it as not in use
    assert not cluster.controllers.attach_detach.forced_detaches
    assert "volumesInUse" not in node(cluster)["status"]


def test_new_pod_of_a_deployment_gets_the_multi_attach_event() -> None:
    cluster, _ = _demo("deployments")
    old = _pod(cluster)["metadata"]["name"]
    cluster.machines[VICTIM].power_off()
    run(cluster, 420.0)
    (event,) = events(cluster, "FailedAttachVolume")
    (volume,) = cluster.store.list("persistentvolumes")
    assert event["count"] == 1
    assert event["message"] == (
        f'Multi-Attach error for volume "{volume["metadata"]["name"]}" Volume is already used by pod(s) {old}'
    )


def test_stuck_terminating_pod_keeps_the_volume_attached() -> None:
    """Facts 7: the last reported state on a dead node is Running; the 6 min do not start with the deletion."""
    cluster, _ = _demo("deployments")
    cluster.machines[VICTIM].power_off()
    run(cluster, 360.0 + 900.0)
    assert _attached(cluster) == {VICTIM: True}
    assert not cluster.controllers.attach_detach.forced_detaches


@pytest.mark.parametrize("plural", ["statefulsets", "deployments"])
def test_six_minutes_start_when_the_pod_object_is_removed(plural: str) -> None:
    cluster, history = _demo(plural)
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    begin = cluster.sim.now
    cluster.delete_object("pods", "demo", _pod(cluster)["metadata"]["name"], 0)
    run(cluster, 30.0)
    (event,) = events(cluster, "FailedAttachVolume")
    assert "Volume is already exclusively attached to one node and can't be attached to another" in event["message"]
    run(cluster, 350.0)
    assert 360.0 <= _gone(history, begin) <= 361.0
    assert cluster.controllers.attach_detach.forced_detaches == {"timeout": 1}
    assert _running(cluster) == ["ra-worker2"]


def test_force_detach_can_be_disabled() -> None:
    cluster, _ = _demo(disable_force_detach_on_timeout=True)
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    cluster.delete_object("pods", "demo", "db-0", 0)
    run(cluster, 600.0)
    assert _attached(cluster) == {VICTIM: True}


@pytest.mark.parametrize("disabled", [False, True])
def test_out_of_service_detaches_at_once_even_if_force_detach_is_disabled(disabled: bool) -> None:
    cluster, history = _demo(disable_force_detach_on_timeout=disabled)
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    begin = cluster.sim.now
    _taint(cluster, "NoExecute")
    run(cluster, 50.0)
    assert _gone(history, begin) <= 21.0
    assert cluster.controllers.attach_detach.forced_detaches == {"out-of-service": 1}
    assert _running(cluster) == ["ra-worker2"]


@pytest.mark.parametrize(("disabled", "reason"), [(False, "timeout"), (True, "out-of-service")])
def test_after_six_minutes_out_of_service_counts_as_timeout(disabled: bool, reason: str) -> None:
    """reconciler.go checks forceDetachTimeoutExpired first. Until then the volume is on the Ready node."""
    cluster, _ = _demo("statefulsets", "unknown-missing", disable_force_detach_on_timeout=disabled)
    _cordon(cluster, VICTIM, True)
    cluster.machines[VICTIM].power_off()
    cluster.delete_object("pods", "demo", "db-0", 0)
    run(cluster, 400.0)
    assert _attached(cluster) == {VICTIM: True}
    assert not cluster.controllers.attach_detach.forced_detaches
    _taint(cluster, "NoSchedule")
    run(cluster, 1.0)
    assert cluster.controllers.attach_detach.forced_detaches == {reason: 1}


def test_out_of_service_with_no_schedule_detaches_volumes_of_terminating_pods() -> None:
    cluster, _ = _demo()
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    _taint(cluster, "NoSchedule")
    run(cluster, 30.0)
    assert _attached(cluster) == {VICTIM: True}
    cluster.delete_object("pods", "demo", "db-0")
    run(cluster, 50.0)
    assert _running(cluster) == ["ra-worker2"]


def test_out_of_service_on_a_healthy_node_skips_the_mounted_check() -> None:
    """The danger of facts 6: detached while the kubelet reports the volume in use."""
    cluster, history = _demo()
    _taint(cluster, "NoSchedule")
    _cordon(cluster, VICTIM, True)
    begin = cluster.sim.now
    cluster.delete_object("pods", "demo", "db-0")
    run(cluster, 8.0)
    detached = _gone(history, begin)
    used = [o["status"].get("volumesInUse") for t, _, o in history.since(begin, "nodes") if t <= detached]
    assert used[-1]
    assert cluster.controllers.attach_detach.forced_detaches == {"out-of-service": 1}


def test_volume_of_a_deleted_node_still_needs_the_six_minutes() -> None:
    cluster, history = _demo()
    cluster.machines[VICTIM].power_off()
    begin = cluster.sim.now
    cluster.delete_object("nodes", "", VICTIM)
    run(cluster, 500.0)
    assert 360.0 + 40.0 <= _gone(history, begin) <= 360.0 + 81.0
    assert _running(cluster) == ["ra-worker2"]


def test_restart_of_the_controller_manager_restarts_the_six_minutes() -> None:
    cluster, history = _demo()
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    begin = cluster.sim.now
    cluster.delete_object("pods", "demo", "db-0", 0)
    run(cluster, 200.0)
    cluster.controllers.restart()
    run(cluster, 380.0)
    assert 560.0 <= _gone(history, begin) <= 561.0


def test_pod_that_returns_resets_the_clock() -> None:
    cluster, _ = _demo()
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    _cordon(cluster, "ra-worker2", True)
    cluster.delete_object("pods", "demo", "db-0", 0)
    run(cluster, 200.0)
    cluster.machines[VICTIM].power_on()
    run(cluster, 60.0)
    assert _running(cluster) == [VICTIM]
    assert _attached(cluster) == {VICTIM: True}


def test_rebooted_node_keeps_its_volume() -> None:
    cluster, _ = _demo()
    uid = _pod(cluster)["metadata"]["uid"]
    cluster.machines[VICTIM].power_off()
    run(cluster, 5.0)
    cluster.machines[VICTIM].power_on()
    run(cluster, 40.0)
    assert (_pod(cluster)["metadata"]["uid"], _running(cluster)) == (uid, [VICTIM])
    assert _attached(cluster) == {VICTIM: True}


def _impatient() -> tuple[Cluster, History]:
    """Lose the victim, whose pod tolerates that for 20 s, and bring it back while the pod is Terminating."""
    cluster, history = _demo()
    tolerations = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 20}]
    tolerations[0]["effect"] = "NoExecute"
    cluster.store.patch("pods", "demo", "db-0", lambda pod: pod["spec"].update(tolerations=tolerations))
    cluster.machines[VICTIM].power_off()
    run(cluster, 100.0)
    assert "deletionTimestamp" in _pod(cluster)["metadata"]
    return cluster, history


def test_returned_node_keeps_the_volume_until_its_second_status() -> None:
    """Recorded: the Failed pod goes after 3.7 to 7.8 s, the volume after 10.1 and 10.3 s."""
    cluster, history = _impatient()
    _cordon(cluster, VICTIM, True)
    cluster.machines[VICTIM].power_on()
    begin = cluster.sim.now
    run(cluster, 40.0)
    started = max(t for t, _, o in history.since(begin, "events") if o["reason"] == "Starting")
    pods = [(t, type_, o) for t, type_, o in history.since(begin, "pods") if o["spec"].get("nodeName") == VICTIM]
    (removed,) = [t for t, type_, _ in pods if type_ == "DELETED"]
    assert 3.0 <= removed - started <= 8.0
    assert any(o["status"]["phase"] == "Failed" for t, _, o in pods if t < removed)
    assert 9.5 <= _gone(history, begin) - started <= 11.5
    assert not cluster.controllers.attach_detach.forced_detaches
    assert _running(cluster) == ["ra-worker2"]


def test_volume_is_not_detached_if_the_replacement_is_on_the_same_node() -> None:
    cluster, history = _impatient()
    _cordon(cluster, "ra-worker2", True)
    cluster.machines[VICTIM].power_on()
    begin = cluster.sim.now
    run(cluster, 60.0)
    assert _running(cluster) == [VICTIM]
    assert not history.since(begin, "volumeattachments")


def test_volume_of_a_pod_that_was_force_deleted_meanwhile_is_unmounted_on_return() -> None:
    cluster, history = _impatient()
    cluster.delete_object("pods", "demo", "db-0", 0)
    run(cluster, 1.0)
    cluster.machines[VICTIM].power_on()
    begin = cluster.sim.now
    run(cluster, 40.0)
    started = max(t for t, _, o in history.since(begin, "events") if o["reason"] == "Starting")
    assert 9.5 <= _gone(history, begin) - started <= 11.5
    assert _running(cluster) == ["ra-worker2"]


def test_forced_detach_leaves_nothing_in_use_on_return() -> None:
    """Recording 31: the first status of the returned node has no volumes. reconstruct.go."""
    cluster, _ = _impatient()
    cluster.delete_object("pods", "demo", "db-0", 0)
    run(cluster, 370.0)
    cluster.machines[VICTIM].power_on()
    while not is_ready(node(cluster)):
        run(cluster, 0.01)
    assert "volumesInUse" not in node(cluster)["status"]


def test_no_multi_attach_event_while_a_detach_is_under_way() -> None:
    """ADR attachDesiredVolumes: nothing is done while an operation is pending for the volume."""
    cluster, history = _demo()
    _cordon(cluster, VICTIM, True)
    _cordon(cluster, "ra-worker2", True)
    begin = cluster.sim.now
    cluster.delete_object("pods", "demo", "db-0")
    while not any("deletionTimestamp" in o["metadata"] for _, _, o in history.since(begin, "volumeattachments")):
        run(cluster, 0.01)
    _cordon(cluster, "ra-worker2", False)
    run(cluster, 0.3)
    assert _pod(cluster)["spec"]["nodeName"] == "ra-worker2"
    run(cluster, 40.0)
    assert _running(cluster) == ["ra-worker2"]
    assert not events(cluster, "FailedAttachVolume")


def test_restart_of_the_controller_manager_finishes_an_attach() -> None:
    cluster, history = _demo()
    _cordon(cluster, VICTIM, True)
    begin = cluster.sim.now
    cluster.delete_object("pods", "demo", "db-0")
    while not any(type_ == "ADDED" for _, type_, _ in history.since(begin, "volumeattachments")):
        run(cluster, 0.01)
    cluster.controllers.restart()
    run(cluster, 40.0)
    assert _running(cluster) == ["ra-worker2"]


def test_pod_waits_for_a_claim_that_is_missing() -> None:
    cluster, _ = _demo()
    volumes = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "late"}}]}
    cluster.create_object("deployments", workload("late", replicas=1, pod=volumes))
    run(cluster, 3.0)
    event = events(cluster, "FailedScheduling")[-1]
    assert event["message"] == '0/3 nodes are available: persistentvolumeclaim "late" not found.'
    cluster.create_object("persistentvolumeclaims", {"metadata": {"name": "late", "namespace": "demo"}, "spec": CLAIM})
    run(cluster, 25.0)
    assert len(_running(cluster)) == 2


def test_claim_outlives_its_stateful_set_until_no_pod_uses_it() -> None:
    cluster, _ = _demo()
    cluster.delete_object("persistentvolumeclaims", "demo", "data-db-0")
    run(cluster, 5.0)
    assert cluster.store.get("persistentvolumeclaims", "demo", "data-db-0") is not None  # protected
    cluster.delete_object("statefulsets", "demo", "db")
    run(cluster, 40.0)
    kinds = ("pods", "persistentvolumeclaims", "persistentvolumes", "volumeattachments")
    assert [list(cluster.store.list(kind)) for kind in kinds] == [[], [], [], []]


@pytest.mark.parametrize(
    ("plural", "body"),
    [
        ("persistentvolumeclaims", {"spec": {**CLAIM, "accessModes": ["ReadWriteSometimes"]}}),
        ("persistentvolumeclaims", {"spec": {**CLAIM, "accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]}}),
        ("persistentvolumeclaims", {"spec": {**CLAIM, "accessModes": []}}),
        ("persistentvolumeclaims", {"spec": {"accessModes": ["ReadWriteOnce"]}}),
        ("persistentvolumeclaims", {"spec": {**CLAIM, "volumeName": "mine"}}),
        ("persistentvolumes", {"spec": {}}),
        ("volumeattachments", {"spec": {}}),
    ],
)
def test_unsimulated_volumes_are_rejected(plural: str, body: Object) -> None:
    cluster, _ = started(settle=0.1, recorded=False)
    with pytest.raises(InvalidError):
        cluster.create_object(plural, {"metadata": {"name": "x", "namespace": "default"}, **body})


def test_restarted_controller_manager_treats_volumes_of_deleted_nodes_as_mounted() -> None:
    """Mounted until reported otherwise: actual_state_of_world_test.go, AddVolumeNode alone."""
    cluster, history = _demo()
    cluster.machines[VICTIM].power_off()
    cluster.delete_object("nodes", "", VICTIM)
    cluster.controllers.restart()
    begin = cluster.sim.now
    run(cluster, 480.0)
    (collected,) = [
        t for t, type_, o in history.since(begin, "pods") if type_ == "DELETED" and o["spec"]["nodeName"] == VICTIM
    ]
    assert _gone(history, begin) - collected == pytest.approx(360.0, abs=1.0)
