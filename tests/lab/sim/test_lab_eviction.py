"""PodDisruptionBudgets and the eviction subresource: facts 8 and 16, shapes of recording 08."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.deletion import EvictionRefused
from chaos.lab.apiserver.eviction import BudgetBusy
from chaos.lab.apiserver.registry import ForbiddenError
from chaos.lab.apiserver.store import ConflictError, NotFoundError, clone
from chaos.lab.cluster import Cluster
from chaos.lab.recorded.user_operations import Drain
from tests.kit.simkit import Object, events, run, spec, started, workload


def _budget(cluster: Cluster, name: str = "web") -> Object:
    found = cluster.store.get("poddisruptionbudgets", "demo", name)
    assert found is not None
    return found


def _status(cluster: Cluster, *keys: str) -> tuple[int, ...]:
    status = _budget(cluster)["status"]
    return tuple(status[key] for key in keys)


def _allowed(cluster: Cluster) -> Object:
    (item,) = _budget(cluster)["status"]["conditions"]
    found: Object = item
    return found


def _make(cluster: Cluster, name: str = "web", selector: Object | None = None, **body: Any) -> None:
    wanted = selector or {"matchLabels": {"app": "web"}}
    budget = {"metadata": {"name": name, "namespace": "demo"}, "spec": {"selector": wanted, **body}}
    cluster.create_object("poddisruptionbudgets", budget)


def _demo(replicas: int = 3, plural: str = "deployments", **budget: Any) -> Cluster:
    """Create running pods of ``web``, then their budget."""
    cluster, _ = started(spec(workers=2), settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    cluster.create_object(plural, workload("web", replicas=replicas, stops=5, grace=20))
    run(cluster, 8.0)
    if budget:
        _make(cluster, **budget)
        run(cluster, 1.0)
    return cluster


def _pods(cluster: Cluster) -> list[str]:
    return [pod["metadata"]["name"] for pod in cluster.store.list("pods", "demo")]


def _pod(cluster: Cluster, name: str) -> Object:
    found = cluster.store.get("pods", "demo", name)
    assert found is not None
    return found


def _set_ready(cluster: Cluster, name: str, status: str) -> None:
    def change(pod: Object) -> None:
        for item in pod["status"]["conditions"]:
            if item["type"] == "Ready":
                item["status"] = status

    cluster.store.patch("pods", "demo", name, change)
    run(cluster, 0.05)


def _edit_status(cluster: Cluster, **fields: Any) -> None:
    cluster.store.patch("poddisruptionbudgets", "demo", "web", lambda obj: obj["status"].update(fields))


def _freeze(cluster: Cluster) -> None:
    """Stop the kubelets, so that no kubelet rewrites a pod's status."""
    for machine in cluster.machines.values():
        machine.kubelet.stop()


@pytest.mark.parametrize(
    ("replicas", "budget", "desired", "allowed"),
    [
        (3, {"minAvailable": 2}, 2, 1),
        (3, {"minAvailable": "50%"}, 2, 1),
        (10, {"maxUnavailable": "25%"}, 7, 3),
        (3, {"maxUnavailable": "25%"}, 2, 1),
        (3, {"minAvailable": "100%"}, 3, 0),
        (0, {"minAvailable": 2}, 2, 0),
        (3, {"maxUnavailable": 5}, 0, 3),
    ],
)
def test_vectors_of_a_running_budget(replicas: int, budget: Object, desired: int, allowed: int) -> None:
    cluster = _demo(replicas, **budget)
    counts = _status(cluster, "currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
    assert counts == (replicas, desired, allowed, replicas)
    assert _allowed(cluster)["reason"] == ("SufficientPods" if allowed else "InsufficientPods")
    assert _allowed(cluster)["observedGeneration"] == _budget(cluster)["status"]["observedGeneration"] == 1
    assert bool(events(cluster, "NoPods")) == (replicas == 0)


def test_too_few_healthy_pods_reject_without_retry_after() -> None:
    cluster = _demo(2, minAvailable=2)
    with pytest.raises(EvictionRefused, match="would violate") as refused:
        cluster.evict_pod("demo", _pods(cluster)[0])
    assert (refused.value.code, refused.value.retry_after) == (429, 0)
    assert refused.value.cause == "The disruption budget web needs 2 healthy pods and has 2 currently"
    assert "deletionTimestamp" not in _pod(cluster, _pods(cluster)[0])["metadata"]


def test_eviction_decrements_the_budget_sets_the_condition_and_deletes() -> None:
    cluster = _demo(3, minAvailable=2)
    name = _pods(cluster)[0]
    cluster.evict_pod("demo", name)
    status = _budget(cluster)["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, [name])
    assert _allowed(cluster)["status"] == "False"
    pod = _pod(cluster, name)
    (target,) = [item for item in pod["status"]["conditions"] if item["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"], target["message"]) == (
        "True", "EvictionByEvictionAPI", "Eviction API: evicting"
    )  # fmt: skip
    assert "observedGeneration" not in target
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 20
    run(cluster, 0.2)
    assert "disruptedPods" not in _budget(cluster)["status"]  # terminating
    assert _status(cluster, "currentHealthy", "disruptionsAllowed", "expectedPods") == (2, 0, 4)
    run(cluster, 3.0)
    assert _status(cluster, "currentHealthy", "disruptionsAllowed") == (3, 1)


def test_a_terminating_pod_is_evicted_whatever_the_budget() -> None:
    """As a real API server did (test_real_runs.py): it gets the condition, and keeps its deletion time."""
    cluster = _demo(3, minAvailable=3)
    name, other, *_ = _pods(cluster)
    cluster.delete_object("pods", "demo", name)
    run(cluster, 1.0)
    before = _pod(cluster, name)["metadata"]
    assert _status(cluster, "disruptionsAllowed") == (0,)
    with pytest.raises(EvictionRefused, match="would violate"):
        cluster.evict_pod("demo", other)
    cluster.evict_pod("demo", name)
    after = _pod(cluster, name)
    assert [item["reason"] for item in after["status"]["conditions"] if item["type"] == "DisruptionTarget"] == [
        "EvictionByEvictionAPI"
    ]
    assert after["metadata"]["deletionTimestamp"] == before["deletionTimestamp"]
    assert "disruptedPods" not in _budget(cluster)["status"]


def test_of_two_concurrent_evictions_one_gets_retry_after() -> None:
    cluster = _demo(3, minAvailable=2)
    first, second = _pods(cluster)[:2]
    cluster.evict_pod("demo", first)
    with pytest.raises(BudgetBusy) as busy:
        cluster.evict_pod("demo", second)
    assert (busy.value.code, busy.value.retry_after) == (504, 10)
    assert 0.5 <= busy.value.retry_delay <= 0.55
    run(cluster, busy.value.retry_delay)
    with pytest.raises(EvictionRefused) as refused:
        cluster.evict_pod("demo", second)
    assert (refused.value.code, refused.value.retry_after) == (429, 0)


def test_options_of_the_caller_reach_the_delete() -> None:
    cluster = _demo(3)
    name = _pods(cluster)[0]
    with pytest.raises(ConflictError):
        cluster.evict_pod("demo", name, {"preconditions": {"uid": "other"}})
    cluster.evict_pod("demo", name, {"gracePeriodSeconds": 7})
    assert _pod(cluster, name)["metadata"]["deletionGracePeriodSeconds"] == 7


def test_dry_run_writes_nothing_but_is_rejected_as_well() -> None:
    cluster = _demo(3, minAvailable=2)
    version = cluster.store.version
    cluster.evict_pod("demo", _pods(cluster)[0], dry_run=True)
    assert cluster.store.version == version
    _edit_status(cluster, disruptionsAllowed=0)
    with pytest.raises(EvictionRefused):
        cluster.evict_pod("demo", _pods(cluster)[0], dry_run=True)


def test_missing_pod_is_not_found() -> None:
    with pytest.raises(NotFoundError):
        _demo(0).evict_pod("demo", "none")


def test_more_than_one_budget_is_an_internal_error() -> None:
    cluster = _demo(3, minAvailable=1)
    _make(cluster, "other", minAvailable=1)
    with pytest.raises(EvictionRefused, match="more than one PodDisruptionBudget") as refused:
        cluster.evict_pod("demo", _pods(cluster)[0])
    assert refused.value.code == 500


def test_budget_not_yet_observed_by_the_controller_gets_retry_after() -> None:
    cluster = _demo(3)
    _make(cluster, minAvailable=1)
    with pytest.raises(EvictionRefused) as refused:
        cluster.evict_pod("demo", _pods(cluster)[0])
    assert (refused.value.code, refused.value.retry_after) == (429, 10)
    assert refused.value.cause == "The disruption budget web is still being processed by the server."
    run(cluster, 0.1)
    cluster.evict_pod("demo", _pods(cluster)[0])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"disruptionsAllowed": -1}, "negative"),
        ({"disruptedPods": {f"p{index}": "2026-11-21T00:00:00Z" for index in range(2001)}}, "too big"),
    ],
)
def test_broken_budget_is_forbidden(fields: Object, text: str) -> None:
    cluster = _demo(3, minAvailable=2)
    _edit_status(cluster, **fields)
    with pytest.raises(ForbiddenError, match=text):
        cluster.evict_pod("demo", _pods(cluster)[0])


def test_terminal_deleted_and_pending_pods_need_no_budget() -> None:
    cluster = _demo(3, minAvailable="100%")
    pending = {"metadata": {"name": "p", "namespace": "demo", "labels": {"app": "web"}}}
    pod = {**pending, "spec": {"containers": [{"name": "c"}], "nodeSelector": {"no": "where"}}}
    cluster.create_object("pods", pod)
    cluster.evict_pod("demo", "p")
    assert cluster.store.get("pods", "demo", "p") is None  # not scheduled: grace 0
    name = _pods(cluster)[0]
    cluster.delete_object("pods", "demo", name)
    cluster.evict_pod("demo", name, {"gracePeriodSeconds": 3})
    assert _pod(cluster, name)["metadata"]["deletionGracePeriodSeconds"] == 3


@pytest.mark.parametrize(
    ("policy", "minimum", "evicted"),
    [
        (None, 2, True),  # healthy 2, desired 2: within the budget
        (None, 3, False),
        (None, 0, True),  # desired 0: the budget itself has to allow it, and does
        ("IfHealthyBudget", 3, False),
        ("AlwaysAllow", 3, True),
    ],
)
def test_pods_that_are_not_ready(policy: str | None, minimum: int, evicted: bool) -> None:
    cluster = _demo(3, minAvailable=minimum, **({"unhealthyPodEvictionPolicy": policy} if policy else {}))
    _freeze(cluster)
    name = _pods(cluster)[0]
    _set_ready(cluster, name, "False")
    before = _status(cluster, "disruptionsAllowed")
    if evicted:
        cluster.evict_pod("demo", name)
    else:
        with pytest.raises(EvictionRefused):
            cluster.evict_pod("demo", name)
    assert ("deletionTimestamp" in _pod(cluster, name)["metadata"]) == evicted
    if minimum:
        assert _status(cluster, "disruptionsAllowed") == before


def test_three_unready_pods_with_max_unavailable_one() -> None:
    """Upstream e2e apps/disruption.go: IfHealthyBudget evicts none, AlwaysAllow all three."""
    for policy, expected in (("IfHealthyBudget", 0), ("AlwaysAllow", 3)):
        cluster = _demo(3, maxUnavailable=1, unhealthyPodEvictionPolicy=policy)
        _freeze(cluster)
        done = 0
        for name in _pods(cluster):
            _set_ready(cluster, name, "False")
        for name in _pods(cluster):
            try:
                cluster.evict_pod("demo", name)
            except EvictionRefused:
                continue
            done += 1
        assert done == expected


def test_disrupted_pod_that_is_not_deleted_is_dropped_after_two_minutes() -> None:
    cluster = _demo(3, minAvailable=2)
    name = _pods(cluster)[0]
    _edit_status(cluster, disruptedPods={name: cluster.sim.timestamp()})
    run(cluster, 1.0)
    assert _status(cluster, "currentHealthy", "disruptionsAllowed") == (2, 0)
    run(cluster, 117.0)
    assert name in _budget(cluster)["status"]["disruptedPods"]
    run(cluster, 3.0)
    assert "disruptedPods" not in _budget(cluster)["status"]
    assert _status(cluster, "currentHealthy", "disruptionsAllowed") == (3, 1)
    assert events(cluster, "NotDeleted")[0]["message"] == "Pod was expected by PDB demo/web to be deleted but it wasn't"


def test_stale_condition_is_reset_after_two_minutes_except_the_kubelets() -> None:
    cluster = _demo(2)
    for name, reason in zip(_pods(cluster), ("EvictionByEvictionAPI", "TerminationByKubelet"), strict=True):
        _mark(cluster, name, reason)
    run(cluster, 118.0)
    assert [_target(cluster, name)["status"] for name in _pods(cluster)] == ["True", "True"]
    run(cluster, 3.0)
    stale, unchanged = (_target(cluster, name) for name in _pods(cluster))
    assert (stale["status"], stale.get("reason"), stale.get("message")) == ("False", None, None)
    assert (unchanged["status"], unchanged["reason"]) == ("True", "TerminationByKubelet")


def _mark(cluster: Cluster, name: str, reason: str) -> None:
    item = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m"}
    item |= {"lastTransitionTime": cluster.sim.timestamp()}
    cluster.store.patch("pods", "demo", name, lambda pod: pod["status"]["conditions"].append(item))


def _target(cluster: Cluster, name: str) -> Object:
    conditions = _pod(cluster, name)["status"]["conditions"]
    found: Object = next(item for item in conditions if item["type"] == "DisruptionTarget")
    return found


def test_budget_over_daemon_pods_fails_its_sync_unless_it_is_a_number() -> None:
    cluster = _demo(0, "daemonsets", maxUnavailable=1)
    assert (_allowed(cluster)["status"], _allowed(cluster)["reason"]) == ("False", "SyncFailed")
    assert _allowed(cluster)["message"] == "daemonsets.apps does not implement the scale subresource"
    with pytest.raises(EvictionRefused) as refused:
        cluster.evict_pod("demo", _pods(cluster)[0])
    assert "because it failed sync: daemonsets.apps" in refused.value.cause
    budget: Object = clone(_budget(cluster))
    budget["spec"] = {"selector": budget["spec"]["selector"], "minAvailable": 1}
    cluster.update_object("poddisruptionbudgets", budget)
    run(cluster, 1.0)
    assert (_allowed(cluster)["reason"], _status(cluster, "disruptionsAllowed")) == ("SufficientPods", (1,))


def test_bare_pods_count_only_by_number() -> None:
    cluster = _demo(0, minAvailable="50%")
    pod = {"metadata": {"name": "p", "namespace": "demo", "labels": {"app": "web"}}}
    cluster.create_object("pods", {**pod, "spec": {"containers": [{"name": "c"}]}})
    run(cluster, 3.0)
    assert _status(cluster, "expectedPods", "currentHealthy", "disruptionsAllowed") == (0, 1, 0)
    assert events(cluster, "UnmanagedPods")


@pytest.mark.parametrize(
    "body",
    [
        {"minAvailable": 1, "maxUnavailable": 1},
        {"minAvailable": "101%"},
        {"minAvailable": "half"},
        {"maxUnavailable": -1},
        {"maxUnavailable": True},
        {"minAvailable": 1, "unhealthyPodEvictionPolicy": "Never"},
    ],
)
def test_invalid_budget_is_rejected(body: Object) -> None:
    cluster = _demo(0)
    with pytest.raises(InvalidError):
        _make(cluster, **body)
    _make(cluster, minAvailable=1)
    with pytest.raises(InvalidError):
        cluster.update_object("poddisruptionbudgets", {**_budget(cluster), "spec": body})


def test_lost_node_consumes_the_budget_of_the_others() -> None:
    """Facts 8.2: pods that turned unready with their node lower currentHealthy, and other evictions get 429."""
    cluster = _demo(4, minAvailable=3)
    cluster.machines["ra-worker"].power_off()
    run(cluster, 70.0)
    assert _status(cluster, "currentHealthy", "disruptionsAllowed") == (2, 0)
    alive = [p for p in cluster.store.list("pods", "demo") if p["spec"]["nodeName"] == "ra-worker2"]
    with pytest.raises(EvictionRefused) as refused:
        cluster.evict_pod("demo", alive[0]["metadata"]["name"])
    assert refused.value.code == 429


def _result(drain: Drain) -> str | None:
    return drain.result


def test_drain_of_a_dead_node_waits_until_its_time_is_over() -> None:
    cluster = _demo(3)
    cluster.machines["ra-worker"].power_off()
    drain = Drain(cluster, "ra-worker", timeout=40.0)
    run(cluster, 39.0)
    assert _result(drain) is None
    run(cluster, 2.0)
    assert _result(drain) == "drain did not complete within 40s"
    stuck = [p for p in cluster.store.list("pods", "demo") if p["spec"]["nodeName"] == "ra-worker"]
    assert stuck
    assert all("deletionTimestamp" in pod["metadata"] for pod in stuck)


def test_drain_skips_daemon_pods_and_rejects_bare_pods() -> None:
    cluster = _demo(3)
    cluster.create_object("daemonsets", workload("agent"))
    bare = {"metadata": {"name": "bare", "namespace": "demo"}}
    pod = {"containers": [{"name": "c"}], "nodeName": "ra-worker"}
    cluster.create_object("pods", {**bare, "spec": pod})
    run(cluster, 4.0)
    refused, forced = Drain(cluster, "ra-worker"), Drain(cluster, "ra-worker", force=True)
    run(cluster, 20.0)
    assert "demo/bare" in (refused.result or "")
    assert forced.result == ""
    left = [p for p in cluster.store.list("pods", "demo") if p["spec"]["nodeName"] == "ra-worker"]
    assert [pod["metadata"]["labels"]["app"] for pod in left] == ["agent"]
