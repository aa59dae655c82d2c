"""A Job under random disruptions: every pod is counted exactly once, and the Job completes. Facts 5.7 and 16.

Counts that are updated with every change equal a full recount.
"""

from __future__ import annotations

import contextlib
import random
import uuid
from collections import Counter
from functools import partial

import pytest

from chaos.lab.apiserver.deletion import EvictionRefused
from chaos.lab.apiserver.events import Recorder
from chaos.lab.apiserver.pods import untolerated
from chaos.lab.apiserver.store import Change, NotFoundError, Store
from chaos.lab.cluster import Cluster
from chaos.lab.controllers.daemon_pods import EligibilityCache
from chaos.lab.controllers.workload import OwnerIndex, PodCounts, revision_of
from chaos.lab.node.logind import LogindError
from chaos.lab.objects import (
    condition,
    is_active,
    is_deleting,
    is_ready,
    is_terminating,
    matches_node,
    name_of,
    taints_of,
    uid_of,
)
from chaos.lab.sim import SimClock, seconds_of
from tests.kit.simkit import VICTIM, Object, disruption, run, spec, started, workload

_FINALIZER = "batch.kubernetes.io/job-tracking"
_WANTED = 12


def _job() -> Object:
    template = {
        "metadata": {"annotations": {"lab.nodefall.dev/runs-for": "25", "lab.nodefall.dev/ignores-sigterm": "true"}},
        "spec": {"containers": [{"name": "c"}], "restartPolicy": "Never", "terminationGracePeriodSeconds": 5},
    }
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    body = {"template": template, "completions": _WANTED, "parallelism": 3, "backoffLimit": 1000}
    return {"metadata": {"name": "task"}, "spec": body | {"podFailurePolicy": {"rules": rules}}}


class _Count:
    """How the pods of the Job ended, seen when each lost its finalizer."""

    def __init__(self) -> None:
        self.ends: dict[str, tuple[str, bool]] = {}

    def __call__(self, change: Change) -> None:
        if change.plural != "pods" or not change.object["metadata"].get("labels", {}).get("job-name"):
            return
        metadata, before = change.object["metadata"], change.before
        had = before is not None and _FINALIZER in (before["metadata"].get("finalizers") or [])
        if had and _FINALIZER not in (metadata.get("finalizers") or []):
            assert metadata["uid"] not in self.ends
            self.ends[metadata["uid"]] = (change.object["status"]["phase"], bool(disruption(change.object)))


def _disrupt(cluster: Cluster, dice: random.Random) -> None:
    machine = cluster.machines[dice.choice(list(cluster.machines)[1:])]
    pods = [pod["metadata"]["name"] for pod in cluster.store.list("pods", "default")]
    operation = dice.choice(["cut", "shut down", "restart kubelet", "evict", "delete", "manager"])
    if operation == "cut":
        machine.reset()
    elif operation == "shut down" and machine.is_reachable:
        machine.logind.reboot()
    elif operation == "restart kubelet" and machine.is_reachable:
        machine.kubelet.restart()
    elif operation == "manager":
        cluster.controllers.restart()
    elif pods:
        try:
            if operation == "evict":
                cluster.evict_pod("default", dice.choice(pods))
            else:
                cluster.delete_object("pods", "default", dice.choice(pods))
        except (NotFoundError, EvictionRefused) as error:
            pytest.fail(f"no budget is in the way, and the pod is there: {error}")


@pytest.mark.parametrize("seed", range(1, 7))
def test_every_pod_is_counted_once_and_the_job_completes(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    cluster, _ = started(spec(seed=seed), settle=1.0, recorded=False)
    count = _Count()
    cluster.store.subscribe(count)
    cluster.create_object("jobs", _job())
    for _ in range(12):
        run(cluster, dice.choice([0.3, 2.0, 9.0, 31.0]))
        with contextlib.suppress(LogindError):  # one shutdown at a time
            _disrupt(cluster, dice)
    run(cluster, 4000.0)
    job = cluster.store.get("jobs", "default", "task")
    assert job is not None
    status = job["status"]
    assert [item["type"] for item in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert status["succeeded"] == sum(phase == "Succeeded" for phase, _ in count.ends.values()) == _WANTED
    counted = sum(phase == "Failed" and not disrupted for phase, disrupted in count.ends.values())
    assert status.get("failed", 0) == counted
    assert (status["terminating"], status["uncountedTerminatedPods"]) == (0, {})


CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def test_pod_counts_equal_a_recount_at_every_change() -> None:
    cluster, _ = started(spec(seed=2))
    tallies, store, seen = OwnerIndex("ReplicaSet"), cluster.store, set()
    for pod in store.list("pods"):
        tallies.on_change(Change(0, "ADDED", "pods", pod, None))

    def changed(change: Change) -> None:
        tallies.on_change(change)
        for owner in store.list("replicasets"):
            pods = store.list_controlled("pods", uid_of(owner))
            active = [pod for pod in pods if is_active(pod)]
            found = PodCounts(len(pods), len(active), sum(map(is_ready, active)), sum(map(is_terminating, pods)))
            assert tallies.of(uid_of(owner)) == found
            seen.add((found.active, found.ready, found.terminating))

    store.subscribe(changed, "pods")
    cluster.create_object("deployments", workload("more", replicas=4))
    run(cluster, 20.0)
    cluster.machines[VICTIM].logind.power_off()
    run(cluster, 60.0)
    for pod in store.list("pods", "demo")[::2]:
        cluster.delete_object("pods", "demo", name_of(pod))
    run(cluster, 60.0)
    assert len(seen) > 10
    assert any(terminating for _, _, terminating in seen)


def _taint(taints: list[Object], node: Object) -> None:
    node["spec"]["taints"] = taints


def test_eligibility_follows_every_change_of_a_node() -> None:
    cluster, _ = started(spec(seed=2))
    prototype = {"metadata": {}, "spec": {"nodeSelector": {"kubernetes.io/hostname": VICTIM}}}
    eligibility, found = EligibilityCache(prototype), []

    def evaluate(change: Change) -> None:
        node = change.object
        fits_now, taints = matches_node(prototype, node), taints_of(node)
        should_run = fits_now and not untolerated(prototype, taints, ("NoSchedule", "NoExecute"))
        should_continue = fits_now and not untolerated(prototype, taints, ("NoExecute",))
        assert eligibility.of(node) == (should_run, should_continue)
        found.append((should_run, should_continue))

    cluster.store.subscribe(evaluate, "nodes")
    for taints in ([{"key": "k", "effect": "NoSchedule"}], [{"key": "k", "effect": "NoExecute"}], []):
        cluster.store.patch("nodes", "", VICTIM, partial(_taint, taints))
    hostname = {"kubernetes.io/hostname": "other"}
    cluster.store.patch("nodes", "", VICTIM, lambda node: node["metadata"]["labels"].update(hostname))
    assert found == [(False, True), (False, False), (True, True), (False, False)]


def _recounted(store: Store, owner: Object, now: float) -> Object:
    """Status of a DaemonSet recounted from all nodes and pods; its pods tolerate no taint."""
    found = Counter[str]()
    newest = max(store.list_controlled("controllerrevisions", uid_of(owner)), key=lambda item: int(item["revision"]))
    for node in store.list("nodes"):
        pods = [pod for pod in store.list_controlled("pods", uid_of(owner)) if _made_for(pod) == name_of(node)]
        living = [pod for pod in pods if not is_deleting(pod)]
        should_run = not any(taint["key"] in ("k", CONTROL_PLANE) for taint in taints_of(node))
        ready = [condition(pod, "Ready") for pod in living if is_ready(pod)]
        since = [now - seconds_of(item["lastTransitionTime"]) for item in ready if item is not None]
        found["desiredNumberScheduled"] += should_run
        found["currentNumberScheduled"] += should_run and bool(living)
        found["numberReady"] += should_run and bool(ready)
        found["numberAvailable"] += should_run and any(age >= 5 for age in since)
        found["updatedNumberScheduled"] += should_run and any(revision_of(pod) == revision_of(newest) for pod in living)
    return dict(found)


def _made_for(pod: Object) -> str:
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def test_the_status_of_a_daemon_set_equals_a_recount_whenever_it_is_written() -> None:
    cluster, _ = started(spec(seed=2), recorded=False)
    store, seen = cluster.store, set()
    cluster.create_object("daemonsets", workload("agent", ns="default", minReadySeconds=5))

    def changed(change: Change) -> None:
        status = change.object["status"]
        if change.before is None or change.before["status"] == status:
            return
        found = _recounted(store, change.object, cluster.sim.now)
        assert {key: status.get(key, 0) for key in found} == found
        seen.add(tuple(found.values()))

    store.subscribe(changed, "daemonsets")
    run(cluster, 30.0)
    owner = store.get("daemonsets", "default", "agent") or {}
    cluster.delete_object("pods", "default", name_of(store.list_controlled("pods", uid_of(owner))[0]))
    run(cluster, 60.0)
    template = {**owner["spec"]["template"], "metadata": {"labels": {"app": "agent"}, "annotations": {"new": "1"}}}
    cluster.update_object("daemonsets", {**owner, "spec": {**owner["spec"], "template": template}})
    run(cluster, 20.0)
    for taints in ([{"key": "k", "effect": "NoExecute"}], []):
        store.patch("nodes", "", VICTIM, partial(_taint, taints))
        run(cluster, 60.0)
    cluster.delete_object("nodes", "", VICTIM)
    run(cluster, 60.0)
    assert len(seen) > 10


def test_events_of_the_same_instant_have_short_unique_names() -> None:
    sim = SimClock(1.7e9, 1)
    store = Store(sim)
    store.create("namespaces", {"metadata": {"name": "default"}})
    recorders = [Recorder(sim, store, component) for component in ("one", "other")]
    thing = {"metadata": {"name": "thing", "namespace": "default", "uid": "u"}}
    for number in range(300):
        for recorder in recorders:
            recorder.emit("Pod", thing, "Reason", f"message {number}")
    sim.run_until(sim.now + 1.0)
    names = [name_of(event) for event in store.list("events")]
    assert len(names) == 600
    assert {len(name) for name in names} == {len("thing.") + 16}


def test_uids_equal_those_of_the_standard_library() -> None:
    sim, same = SimClock(0.0, 7), SimClock(0.0, 7)
    store = Store(sim)
    for number in range(200):
        made = store.create("events", {"metadata": {"name": str(number)}})
        assert uid_of(made) == str(uuid.UUID(int=same.rng.getrandbits(128), version=4))
