"""A Job under random disruptions: every pod is counted exactly once, and the Job completes. Facts 5.7 and 16."""

from __future__ import annotations

import contextlib
import random

import pytest

from chaos.lab.apiserver.eviction import EvictionRefused
from chaos.lab.apiserver.store import Change, NotFoundError
from chaos.lab.cluster import Cluster
from chaos.lab.node.logind import LogindError
from tests.kit.simkit import Object, disruption, run, spec, started

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
