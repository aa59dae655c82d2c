"""Jobs: counting, back-off, podFailurePolicy, end. pkg/controller/job and the documentation of Jobs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.spec import ControllerSpec
from tests.kit.simkit import Object, disruption, events, run, spec, started

_IGNORE = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}


def _job(
    runs_for: float = 5, code: int = 0, *, policy: str = "Never", pod: Object | None = None, **body: Any
) -> Object:
    annotations = {"lab.nodefall.dev/runs-for": f"{runs_for:g}", "lab.nodefall.dev/exit-code": str(code)}
    annotations |= (pod or {}).pop("annotations", {})
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "c"}], "restartPolicy": policy, **(pod or {})},
    }
    return {"metadata": {"name": "task", "namespace": "default"}, "spec": {"template": template, **body}}


def _started(job: Object, settle: float = 4.0, **settings: Any) -> Cluster:
    cluster, _ = started(spec(workers=2, **settings), settle=1.0, recorded=False)
    cluster.create_object("jobs", job)
    run(cluster, settle)
    return cluster


def _status(cluster: Cluster) -> Any:
    job = cluster.store.get("jobs", "default", "task")
    assert job is not None
    return job["status"]


def _conditions(cluster: Cluster) -> dict[str, str]:
    """Reasons of the conditions that are True, by type."""
    found = _status(cluster).get("conditions") or []
    return {item["type"]: item["reason"] for item in found if item["status"] == "True"}


def _pods(cluster: Cluster) -> list[Object]:
    return list(cluster.store.list("pods", "default"))


def _change(cluster: Cluster, **body: Any) -> None:
    job: Object = clone(cluster.store.get("jobs", "default", "task"))
    job["spec"] |= body
    cluster.update_object("jobs", job)


def test_completions_run_with_the_given_parallelism() -> None:
    cluster = _started(_job(completions=5, parallelism=2))
    assert (_status(cluster)["active"], _status(cluster)["ready"]) == (2, 2)
    most = 0
    for _ in range(60):
        run(cluster, 1.0)
        most = max(most, sum(pod["status"]["phase"] in ("Pending", "Running") for pod in _pods(cluster)))
    status = _status(cluster)
    assert most == 2
    assert (status["succeeded"], status.get("failed"), status.get("active")) == (5, None, None)
    assert _conditions(cluster) == {"SuccessCriteriaMet": "", "Complete": ""}
    assert status["completionTime"] > status["startTime"]
    assert status["uncountedTerminatedPods"] == {}
    assert [pod["status"]["phase"] for pod in _pods(cluster)] == ["Succeeded"] * 5
    assert not any(pod["metadata"]["finalizers"] for pod in _pods(cluster))
    assert [event["message"] for event in events(cluster, "Completed")] == ["Job completed"]


def test_a_pod_is_uncounted_until_its_finalizer_is_removed() -> None:
    cluster = _started(_job(5), settle=0.0)
    seen: list[tuple[int, int, int]] = []

    def note(_: object) -> None:
        job = cluster.store.get("jobs", "default", "task")
        status = job["status"] if job else {}
        waiting = len(status.get("uncountedTerminatedPods", {}).get("succeeded", []))
        tracked = sum(bool(pod["metadata"].get("finalizers")) for pod in _pods(cluster))
        seen.append((waiting, tracked, status.get("succeeded", 0)))

    cluster.store.subscribe(note)
    run(cluster, 12.0)
    assert list(dict.fromkeys(seen)) == [(0, 1, 0), (1, 1, 0), (1, 0, 0), (0, 0, 1)]


def test_failures_back_off_doubling_until_the_limit() -> None:
    cluster = _started(_job(1, 3, backoffLimit=3), settle=0.0)
    begins = []
    for _ in range(160):
        run(cluster, 1.0)
        begins.append(len(_pods(cluster)))
    first = [begins.index(number) for number in (1, 2, 3, 4)]
    gaps = [after - before for before, after in pairwise(first)]
    for gap, wait in zip(gaps, (10, 20, 40), strict=True):
        assert wait <= gap <= wait + 5
    status = _status(cluster)
    assert (status["failed"], len(_pods(cluster))) == (4, 4)
    assert _conditions(cluster) == dict.fromkeys(("FailureTarget", "Failed"), "BackoffLimitExceeded")
    assert events(cluster, "BackoffLimitExceeded")[0]["message"] == "Job has reached the specified backoff limit"


def test_on_failure_restarts_in_place_and_the_restarts_count() -> None:
    cluster = _started(_job(1, 3, policy="OnFailure", backoffLimit=2), settle=40.0)
    assert "BackoffLimitExceeded" in _conditions(cluster).values()
    assert (_status(cluster)["failed"], _pods(cluster)) == (1, [])


def _shut_down(cluster: Cluster, pod: Object) -> None:
    cluster.machines[pod["spec"]["nodeName"]].logind.power_off()


def _evict(cluster: Cluster, pod: Object) -> None:
    cluster.evict_pod("default", pod["metadata"]["name"])


def _taint(cluster: Cluster, pod: Object) -> None:
    node: Object = clone(cluster.store.get("nodes", "", pod["spec"]["nodeName"]))
    node["spec"]["taints"] = [{"key": "maintenance", "effect": "NoExecute"}]
    cluster.update_object("nodes", node)


_DISRUPTIONS = {
    "TerminationByKubelet": _shut_down,
    "EvictionByEvictionAPI": _evict,
    "DeletionByTaintManager": _taint,
}


@pytest.mark.parametrize("reason", sorted(_DISRUPTIONS))
@pytest.mark.parametrize("ignored", [True, False])
def test_disrupted_pods_count_unless_the_policy_ignores_them(reason: str, ignored: bool) -> None:
    """The documentation's case: kubernetes.io, handling retriable and non-retriable pod failures."""
    pod = {"annotations": {"lab.nodefall.dev/ignores-sigterm": "true"}, "terminationGracePeriodSeconds": 5}
    policy: dict[str, Any] = {"podFailurePolicy": _IGNORE} if ignored else {}
    cluster = _started(_job(30, backoffLimit=0, pod=pod, **policy))
    (victim,) = _pods(cluster)
    seen = []
    cluster.store.subscribe(lambda change: seen.append(disruption(change.object)) if change.plural == "pods" else None)
    _DISRUPTIONS[reason](cluster, victim)
    run(cluster, 80.0)
    assert reason in seen
    status = _status(cluster)
    if ignored:
        assert (status["succeeded"], status.get("failed")) == (1, None)
        assert "Complete" in _conditions(cluster)
    else:
        assert (status.get("succeeded"), status["failed"]) == (None, 1)
        assert _conditions(cluster)["Failed"] == "BackoffLimitExceeded"


@pytest.mark.parametrize("code", [42, 3])
def test_an_exit_code_can_fail_the_whole_job(code: int) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}}
    cluster = _started(_job(2, code, backoffLimit=6, podFailurePolicy={"rules": [rule]}), settle=12.0)
    if code == 3:
        assert not _conditions(cluster)
        return
    name = _pods(cluster)[0]["metadata"]["name"]
    assert _conditions(cluster) == dict.fromkeys(("FailureTarget", "Failed"), "PodFailurePolicy")
    message = f"Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
    assert events(cluster, "PodFailurePolicy")[0]["message"] == message


@pytest.mark.parametrize(("replacement", "expected"), [("Failed", 1), ("TerminatingOrFailed", 2)])
def test_pod_replacement_policy_and_a_pod_that_hangs(replacement: str, expected: int) -> None:
    """A pod deleted on a dead node is terminating for ever; facts 5.7."""
    cluster = _started(_job(1000, podReplacementPolicy=replacement))
    (victim,) = _pods(cluster)
    cluster.machines[victim["spec"]["nodeName"]].power_off()
    cluster.delete_object("pods", "default", victim["metadata"]["name"])
    run(cluster, 30.0)
    assert len(_pods(cluster)) == expected
    assert _status(cluster)["terminating"] == 1
    assert _status(cluster).get("failed", 0) == expected - 1


def test_out_of_service_frees_a_job_that_waits_for_its_pod() -> None:
    tolerations = [{"operator": "Exists", "effect": "NoExecute", "key": "node.kubernetes.io/unreachable"}]
    job = _job(1000, podFailurePolicy=_IGNORE, pod={"tolerations": tolerations})
    cluster = _started(job, controllers=ControllerSpec(node_monitor_grace_period=10))
    (victim,) = _pods(cluster)
    cluster.machines[victim["spec"]["nodeName"]].power_off()
    run(cluster, 40.0)
    node: Object = clone(cluster.store.get("nodes", "", victim["spec"]["nodeName"]))
    node["spec"]["taints"].append({"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"})
    cluster.update_object("nodes", node)
    run(cluster, 40.0)
    (replacement,) = _pods(cluster)
    assert replacement["spec"]["nodeName"] != victim["spec"]["nodeName"]
    assert _status(cluster).get("failed") is None


def test_pods_running_at_the_deadline_count_as_failed() -> None:
    pod = {"annotations": {"lab.nodefall.dev/stops-after": "6"}}
    cluster = _started(_job(1000, 1, pod=pod, parallelism=2, completions=2, activeDeadlineSeconds=10), settle=13.0)
    assert _conditions(cluster) == {"FailureTarget": "DeadlineExceeded"}
    assert (_status(cluster)["terminating"], _status(cluster)["failed"]) == (2, 2)
    run(cluster, 8.0)
    assert _conditions(cluster)["Failed"] == "DeadlineExceeded"
    assert _pods(cluster) == []


def test_suspended_job_deletes_its_pods_uncounted_and_resumes() -> None:
    cluster = _started(_job(20))
    before = _status(cluster)["startTime"]
    _change(cluster, suspend=True)
    run(cluster, 5.0)
    assert _pods(cluster) == []
    assert _conditions(cluster) == {"Suspended": "JobSuspended"}
    _change(cluster, suspend=False)
    run(cluster, 30.0)
    assert "Complete" in _conditions(cluster)
    assert _status(cluster)["startTime"] > before
    assert (_status(cluster)["succeeded"], _status(cluster).get("failed")) == (1, None)
    assert events(cluster, "Suspended")
    assert events(cluster, "Resumed")


def test_fewer_pods_when_parallelism_shrinks() -> None:
    cluster = _started(_job(1000, parallelism=3, completions=3))
    _change(cluster, parallelism=1)
    run(cluster, 5.0)
    assert len(_pods(cluster)) == 1
    assert _status(cluster).get("failed") is None


def test_job_without_completions_ends_after_one_success_and_all_exits() -> None:
    cluster = _started(_job(5, parallelism=3), settle=15.0)
    assert (_status(cluster)["succeeded"], "Complete" in _conditions(cluster)) == (3, True)


def test_finished_job_and_its_pods_are_deleted_after_its_ttl() -> None:
    cluster = _started(_job(2, ttlSecondsAfterFinished=30), settle=20.0)
    assert "Complete" in _conditions(cluster)
    run(cluster, 30.0)
    assert cluster.store.get("jobs", "default", "task") is None
    assert _pods(cluster) == []


def test_deleting_a_job_deletes_its_pods_and_their_finalizers() -> None:
    cluster = _started(_job(1000, parallelism=2))
    cluster.delete_object("jobs", "default", "task")
    run(cluster, 5.0)
    assert _pods(cluster) == []


def test_restart_of_the_controller_manager_resets_the_back_off() -> None:
    cluster = _started(_job(1, 3), settle=30.0)
    known = len(_pods(cluster))
    cluster.controllers.restart()
    run(cluster, 3.0)
    assert len(_pods(cluster)) == known + 1


def test_defaults_and_labels_of_pods() -> None:
    cluster = _started(_job(podFailurePolicy=_IGNORE))
    job = cluster.store.get("jobs", "default", "task")
    assert job is not None
    body = job["spec"]
    assert (body["backoffLimit"], body["parallelism"], body["completions"]) == (6, 1, 1)
    assert body["podReplacementPolicy"] == "Failed"
    labels = _pods(cluster)[0]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "task"
    assert body["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] == job["metadata"]["uid"]
    assert _pods(cluster)[0]["metadata"]["ownerReferences"][0]["apiVersion"] == "batch/v1"


@pytest.mark.parametrize(
    "body",
    [
        {"completionMode": "Indexed", "completions": 2},
        {"backoffLimitPerIndex": 1},
        {"policy": "Always"},
        {"parallelism": -1},
        {"completions": "2"},
        {"selector": {"matchLabels": {"a": "b"}}},
        {"managedBy": "example.com/kueue"},
        {"podReplacementPolicy": "Sometimes"},
        {"podReplacementPolicy": "TerminatingOrFailed", "podFailurePolicy": _IGNORE},
        {"policy": "OnFailure", "podFailurePolicy": _IGNORE},
        {"podFailurePolicy": {"rules": [{"action": "FailIndex", "onPodConditions": [{"type": "X"}]}]}},
        {"podFailurePolicy": {"rules": [{"action": "Ignore"}]}},
        {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"status": "True"}]}]}},
        {"podFailurePolicy": {"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [0]}}]}},
        {"podFailurePolicy": {"rules": [{"action": "Count", "onExitCodes": {"operator": "Is", "values": [1]}}]}},
        {
            "podFailurePolicy": {
                "rules": [
                    {"action": "Count", "onExitCodes": {"operator": "In", "values": [1], "containerName": "other"}}
                ]
            }
        },
    ],
)
def test_invalid_or_unsimulated_fields_are_rejected(body: Any) -> None:
    with pytest.raises(InvalidError):
        _started(_job(**body))


@pytest.mark.parametrize(
    "body",
    [
        {"completions": 3},
        {"podFailurePolicy": _IGNORE, "podReplacementPolicy": "Failed"},
        {"template": _job(9)["spec"]["template"]},
    ],
)
def test_immutable_fields_of_a_job(body: Any) -> None:
    cluster = _started(_job(1000))
    with pytest.raises(InvalidError, match="immutable"):
        _change(cluster, **body)
