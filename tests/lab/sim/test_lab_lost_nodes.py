"""Nodes that are deleted, created by a client, or out of service; pod GC; force deletion. Facts 6, 9, 10, 11."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.spec import ControllerSpec, LabSpec
from tests.kit.invariants import Checker
from tests.kit.simkit import (
    VICTIM,
    History,
    Object,
    disruption,
    events,
    node,
    pods_on,
    ready,
    run,
    spec,
    started,
    taints,
    workload,
)

OUT = "node.kubernetes.io/out-of-service"
UNREACHABLE = "node.kubernetes.io/unreachable"


def no_execute(cluster: Cluster, name: str) -> set[str]:
    """Keys of a node's NoExecute taints."""
    taints = node(cluster, name)["spec"].get("taints") or []
    return {taint["key"] for taint in taints if taint["effect"] == "NoExecute"}


def _demo(lab: LabSpec | None = None, replicas: int = 2, plural: str = "deployments") -> tuple[Cluster, History]:
    cluster, history = started(lab or spec(workers=2), settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    cluster.create_object(plural, workload("web", replicas=replicas, podManagementPolicy="Parallel"))
    run(cluster, 6.0)
    return cluster, history


def _taint(cluster: Cluster, effect: str, key: str = OUT) -> None:
    obj: Object = clone(node(cluster))
    obj["spec"].setdefault("taints", []).append({"key": key, "effect": effect, "value": "nodeshutdown"})
    cluster.update_object("nodes", obj)


def _of(cluster: Cluster, uid: str) -> Object | None:
    return next((pod for pod in cluster.store.list("pods") if pod["metadata"]["uid"] == uid), None)


def _states(history: History, uid: str, since: float) -> list[tuple[float, str, str, str]]:
    """(seconds, change, phase, DisruptionTarget reason) of one pod."""
    rows = history.since(since, "pods")
    return [(t, type_, o["status"]["phase"], disruption(o)) for t, type_, o in rows if o["metadata"]["uid"] == uid]


@pytest.mark.parametrize("seed", range(1, 6))
def test_orphans_are_deleted_40_to_80_s_after_their_node(seed: int) -> None:
    cluster, history = _demo(spec(workers=2, seed=seed))
    orphan = pods_on(cluster, VICTIM)[0]["metadata"]["uid"]
    cluster.machines[VICTIM].power_off()
    begin = cluster.sim.now
    cluster.delete_object("nodes", "", VICTIM)
    run(cluster, 85.0)
    (failed, removed) = _states(history, orphan, begin)[-2:]
    assert failed[1:] == ("MODIFIED", "Failed", "DeletionByPodGC")
    assert removed[1] == "DELETED"
    assert 40.0 <= removed[0] <= 80.0
    assert cluster.controllers.pod_gc.deletions["demo", "orphaned"] >= 1
    assert [event["involvedObject"]["name"] for event in events(cluster, "RemovingNode")] == [VICTIM]
    assert not pods_on(cluster, VICTIM)


def test_finished_orphans_keep_phase_and_get_no_condition() -> None:
    cluster, history = _demo(replicas=0)
    done = {"metadata": {"name": "done", "namespace": "demo"}}
    pod = cluster.create_object("pods", {**done, "spec": {"containers": [{"name": "c"}], "nodeName": VICTIM}})
    run(cluster, 3.0)
    cluster.machines[VICTIM].power_off()
    cluster.store.patch("pods", "demo", "done", lambda obj: obj["status"].update(phase="Succeeded"))
    begin = cluster.sim.now
    cluster.delete_object("nodes", "", VICTIM)
    run(cluster, 85.0)
    assert _states(history, pod["metadata"]["uid"], begin)[-1][1:] == ("DELETED", "Succeeded", "")


def test_node_recreated_within_the_quarantine_retains_its_pods() -> None:
    cluster, _ = _demo()
    before = {pod["metadata"]["uid"] for pod in pods_on(cluster, VICTIM)}
    cluster.delete_object("nodes", "", VICTIM)
    run(cluster, 30.0)
    assert cluster.store.get("nodes", "", VICTIM) is None  # a running kubelet does not register again
    cluster.machines[VICTIM].kubelet.restart()
    run(cluster, 90.0)
    assert ready(node(cluster))["status"] == "True"
    assert {pod["metadata"]["uid"] for pod in pods_on(cluster, VICTIM)} == before


def test_deleted_node_loses_labels_taints_and_lease_and_returns_only_with_a_new_kubelet() -> None:
    cluster, _ = _demo()
    obj: Object = clone(node(cluster))
    obj["metadata"]["labels"]["own"] = "yes"
    obj["spec"]["taints"] = [{"key": "example.com/own", "effect": "NoSchedule"}]
    cluster.update_object("nodes", obj)
    uid = node(cluster)["metadata"]["uid"]
    cluster.delete_object("nodes", "", VICTIM)
    run(cluster, 120.0)
    assert cluster.store.get("nodes", "", VICTIM) is None
    assert cluster.store.get("leases", "kube-node-lease", VICTIM) is None
    cluster.machines[VICTIM].kubelet.restart()
    run(cluster, 15.0)
    found = node(cluster)
    assert found["metadata"]["uid"] != uid
    assert "own" not in found["metadata"]["labels"]
    assert taints(found) == set()
    lease = cluster.store.get("leases", "kube-node-lease", VICTIM)
    assert lease is not None
    assert lease["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]


def test_node_created_by_a_client_is_unknown_after_the_startup_grace() -> None:
    cluster, history = _demo()
    begin = cluster.sim.now
    cluster.create_object("nodes", {"metadata": {"name": "ghost"}})
    assert taints(node(cluster, "ghost")) == {("not-ready", "NoSchedule")}
    run(cluster, 1.0)
    assert taints(node(cluster, "ghost")) == set()  # no condition requires the taint: doNoScheduleTaintingPass
    run(cluster, 70.0)
    ghost = node(cluster, "ghost")
    conditions = {
        item["type"]: (item["status"], item["reason"], item["message"]) for item in ghost["status"]["conditions"]
    }
    never = ("Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.")
    assert conditions == dict.fromkeys(("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"), never)
    assert taints(ghost) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
    when = [
        t for t, _, o in history.since(begin, "nodes") if o["metadata"]["name"] == "ghost" and o["status"]["conditions"]
    ]
    assert 59.0 <= min(when) <= 66.0
    assert not pods_on(cluster, "ghost")


@pytest.mark.parametrize("seed", range(1, 4))
def test_node_recreated_between_two_passes_is_a_new_one(seed: int) -> None:
    """NLC tryUpdateNodeHealth: without a Ready condition the startup grace starts at the next pass."""
    checkers: list[Checker] = []
    cluster, history = started(spec(seed=seed), watch=lambda made: checkers.append(Checker(made)))
    cluster.machines[VICTIM].power_off()
    run(cluster, 30.0)
    begin = cluster.sim.now
    cluster.delete_object("nodes", "", VICTIM)
    cluster.create_object("nodes", {"metadata": {"name": VICTIM}})
    run(cluster, 80.0)
    of_victim = [(t, o) for t, _, o in history.since(begin, "nodes") if o["metadata"]["name"] == VICTIM]
    when = [t for t, o in of_victim if o["status"].get("conditions")]
    assert 60.0 <= min(when[1:]) <= 70.5  # the first is the deletion
    assert checkers[0].violations == []


def test_node_created_by_a_client_takes_no_pod() -> None:
    cluster, _ = _demo(replicas=0)
    cluster.create_object("nodes", {"metadata": {"name": "ghost", "labels": {"kind": "ghost"}}})
    pod = {"nodeSelector": {"kind": "ghost"}, "tolerations": [{"operator": "Exists"}]}
    cluster.create_object("deployments", workload("lost", replicas=1, pod=pod))
    run(cluster, 3.0)
    (event,) = events(cluster, "FailedScheduling")
    assert "1 Too many pods" in event["message"]


def test_out_of_service_frees_a_stateful_set_of_a_dead_node() -> None:
    cluster, history = _demo(plural="statefulsets", lab=spec(workers=2))
    stuck = pods_on(cluster, VICTIM)[0]["metadata"]["uid"]
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    assert ready(node(cluster))["status"] == "Unknown"
    begin = cluster.sim.now
    _taint(cluster, "NoExecute")
    run(cluster, 30.0)
    states = _states(history, stuck, begin)
    assert states[-1][1:] == ("DELETED", "Failed", "DeletionByTaintManager")  # the taint's own; pod GC adds none
    assert states[-1][0] <= 21.0
    assert cluster.controllers.pod_gc.deletions["demo", "out-of-service"] == 1
    replaced = [pod for pod in cluster.store.list("pods", "demo") if pod["spec"].get("nodeName") == "ra-worker2"]
    assert len(replaced) == 2


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_out_of_service_with_either_effect_deletes_terminating_pods(effect: str) -> None:
    cluster, history = _demo()
    pod = pods_on(cluster, VICTIM)[0]
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    cluster.delete_object("pods", "demo", pod["metadata"]["name"])
    begin = cluster.sim.now
    _taint(cluster, effect)
    run(cluster, 25.0)
    assert _states(history, pod["metadata"]["uid"], begin)[-1][1:3] == ("DELETED", "Failed")


def test_out_of_service_no_schedule_alone_evicts_no_pod() -> None:
    cluster, _ = _demo()
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    before = [pod["metadata"]["uid"] for pod in pods_on(cluster, VICTIM)]
    _taint(cluster, "NoSchedule")
    run(cluster, 60.0)
    assert [pod["metadata"]["uid"] for pod in pods_on(cluster, VICTIM)] == before


def test_pod_gc_spares_pods_of_a_healthy_node_that_is_out_of_service() -> None:
    cluster, _ = _demo(replicas=0)
    ignores = {"lab.nodefall.dev/ignores-sigterm": "true"}
    cluster.create_object("deployments", workload("slow", replicas=2, grace=90, annotations=ignores))
    run(cluster, 4.0)
    _taint(cluster, "NoExecute")
    run(cluster, 60.0)
    assert {pod["status"]["phase"] for pod in pods_on(cluster, VICTIM)} == {"Running"}
    assert not cluster.controllers.pod_gc.deletions


def test_terminated_pods_above_the_threshold_are_deleted_evicted_and_oldest_first() -> None:
    cluster, _ = _demo(spec(workers=2, controllers=ControllerSpec(terminated_pod_gc_threshold=2)), replicas=0)
    for number in range(5):
        name = {"metadata": {"name": f"p{number}", "namespace": "demo"}}
        cluster.create_object("pods", {**name, "spec": {"containers": [{"name": "c"}]}})
        status = {"phase": "Failed", "reason": "Evicted" if number == 4 else "Error"}
        cluster.store.patch("pods", "demo", f"p{number}", lambda obj, status=status: obj.update(status=status))  # type: ignore[misc]
        run(cluster, 1.1)
    run(cluster, 21.0)
    assert [pod["metadata"]["name"] for pod in cluster.store.list("pods", "demo")] == ["p2", "p3"]
    assert cluster.controllers.pod_gc.deletions == {("demo", "terminated"): 3}


def test_force_deletion_splits_the_brain_of_a_stateful_set() -> None:
    """Facts 10: the kubelet is not involved, so the old container may still run when the new one starts."""
    cluster, _ = _demo(plural="statefulsets")
    pod = pods_on(cluster, VICTIM)[0]
    uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
    cluster.machines[VICTIM].kubelet.stop()
    run(cluster, 70.0)
    cluster.delete_object("pods", "demo", name, 0)
    assert _of(cluster, uid) is None
    run(cluster, 5.0)
    replacement = cluster.store.get("pods", "demo", name)
    assert replacement is not None
    assert replacement["spec"]["nodeName"] == "ra-worker2"
    assert replacement["status"]["phase"] == "Running"
    assert [item.state for item in cluster.machines[VICTIM].runtime.containers(uid)] == ["running"]
    cluster.machines[VICTIM].kubelet.start()
    run(cluster, 6.0)
    assert cluster.machines[VICTIM].runtime.containers(uid) == []


def test_finalizer_retains_a_force_deleted_pod() -> None:
    cluster, _ = _demo(replicas=0)
    metadata = {"name": "held", "namespace": "demo", "finalizers": ["example.com/hold"]}
    cluster.create_object("pods", {"metadata": metadata, "spec": {"containers": [{"name": "c"}], "nodeName": VICTIM}})
    run(cluster, 3.0)
    cluster.delete_object("pods", "demo", "held", 0)
    run(cluster, 30.0)
    held = cluster.store.get("pods", "demo", "held")
    assert held is not None
    cluster.update_object("pods", {**held, "metadata": {**held["metadata"], "finalizers": []}})
    assert cluster.store.get("pods", "demo", "held") is None


def test_plain_and_force_deletion_set_no_disruption_target() -> None:
    cluster, history = _demo()
    begin = cluster.sim.now
    for pod, grace in zip(list(cluster.store.list("pods", "demo")), (None, 0), strict=True):
        cluster.delete_object("pods", "demo", pod["metadata"]["name"], grace)
    run(cluster, 20.0)
    assert {disruption(obj) for _, _, obj in history.since(begin, "pods")} == {""}


def test_scale_down_sets_no_disruption_target() -> None:
    cluster, history = _demo()
    begin = cluster.sim.now
    owner = cluster.store.get("deployments", "demo", "web")
    assert owner is not None
    cluster.update_object("deployments", {**owner, "spec": {**owner["spec"], "replicas": 0}})
    run(cluster, 10.0)
    assert list(cluster.store.list("pods", "demo")) == []
    assert {disruption(obj) for _, _, obj in history.since(begin, "pods")} == {""}


def test_restart_of_the_controller_manager_restarts_toleration_countdowns() -> None:
    cluster, history = _demo()
    cluster.machines[VICTIM].power_off()
    run(cluster, 70.0)
    tainted = next(t for t, _, o in history.since(0, "nodes") if ("unreachable", "NoExecute") in taints(o))
    run(cluster, 100.0)
    begin = cluster.sim.now
    cluster.controllers.restart()
    run(cluster, 290.0)
    assert tainted + 300 < cluster.sim.now
    assert not any("deletionTimestamp" in pod["metadata"] for pod in pods_on(cluster, VICTIM))
    run(cluster, 12.0)
    deleted = [t for t, _, o in history.since(begin, "pods") if disruption(o) == "DeletionByTaintManager"]
    assert 299.9 <= min(deleted) <= 301.0
    names = [event for event in events(cluster, "RegisteredNode") if event["involvedObject"]["name"] == VICTIM]
    assert sum(event["count"] for event in names) == 2


def test_restart_of_the_controller_manager_takes_the_no_execute_taint_off_and_on() -> None:
    """NLC markNodeAsReachable: a new process registers every node as reachable, and then taints it again."""
    cluster, history = _demo()
    cluster.machines[VICTIM].power_off()
    run(cluster, 120.0)
    (old,) = [taint for taint in node(cluster)["spec"]["taints"] if taint["effect"] == "NoExecute"]
    begin = cluster.sim.now
    cluster.controllers.restart()
    run(cluster, 6.0)
    rows = [
        ("unreachable", "NoExecute") in taints(o)
        for _, _, o in history.since(begin, "nodes")
        if o["metadata"]["name"] == VICTIM
    ]
    assert rows == [False, True]
    (new,) = [taint for taint in node(cluster)["spec"]["taints"] if taint["effect"] == "NoExecute"]
    assert new["timeAdded"] > old["timeAdded"]
    assert ("unreachable", "NoSchedule") in taints(node(cluster))


def test_restart_of_the_controller_manager_delays_unknown_by_a_whole_grace_period() -> None:
    cluster, history = _demo()
    cluster.machines[VICTIM].power_off()
    run(cluster, 35.0)
    begin = cluster.sim.now
    cluster.controllers.restart()
    run(cluster, 70.0)
    rows = [(t, ready(o)["status"]) for t, _, o in history.since(begin, "nodes") if o["metadata"]["name"] == VICTIM]
    (change,) = [later[0] for earlier, later in pairwise([(0.0, "True"), *rows]) if earlier[1] != later[1]]
    assert 49.0 <= change <= 61.0


@pytest.mark.parametrize(("is_within", "left"), [(False, 0), (True, 1)])
def test_a_taint_of_the_pass_in_which_disruption_mode_begins_may_stay(is_within: bool, left: int) -> None:
    """All nodes become Unknown in one pass. Seen on a cluster: one was tainted 20 ms later, and its pods evicted."""
    lab = spec(workers=2, controllers=ControllerSpec(taints_within_pass=is_within))
    cluster, _ = started(lab, settle=20.0, recorded=False)
    for machine in cluster.machines.values():
        machine.power_off()
    run(cluster, 90.0)
    tainted = [name for name in cluster.machines if UNREACHABLE in no_execute(cluster, name)]
    assert len(tainted) == left


def test_no_taint_stays_once_evictions_have_been_stopped_before() -> None:
    """As in the experiment total-outage: the last node goes down 30 s after the others."""
    lab = spec(workers=3, controllers=ControllerSpec(taints_within_pass=True))
    cluster, _ = started(lab, settle=20.0, recorded=False)
    *most, last = cluster.machines.values()
    for machine in most:
        machine.power_off()
    run(cluster, 30.0)
    last.power_off()
    run(cluster, 90.0)
    assert [name for name in cluster.machines if UNREACHABLE in no_execute(cluster, name)] == []


@pytest.mark.parametrize("value", ["absent", None])
def test_conditions_without_their_time(value: object) -> None:
    """A client may leave it out, and Go writes a zero time as null. The lab goes on."""
    cluster, _ = started(spec(workers=2), settle=5.0)

    def strip(obj: Object) -> None:
        for item in obj["status"].get("conditions") or []:
            item.pop("lastTransitionTime", None)
            if value is None:
                item["lastTransitionTime"] = None

    for plural in ("nodes", "pods", "deployments"):
        for found in list(cluster.store.list(plural)):
            metadata = found["metadata"]
            cluster.store.patch(plural, metadata.get("namespace", ""), metadata["name"], strip)
    run(cluster, 30.0)
    cluster.machines[VICTIM].power_off()
    run(cluster, 400.0)
    assert ready(node(cluster))["status"] == "Unknown"
    assert ready(node(cluster))["lastTransitionTime"]
