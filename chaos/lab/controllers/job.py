"""Jobs: pods until enough have succeeded or too many have failed, each counted exactly once. Facts 5.7.

The order of a sync is that of pkg/controller/job/job_controller.go: what has newly ended is weighed, pods are made or
deleted, the status is written with the uncounted pods, their finalizers go, and then they are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store.store import Change, clone
from chaos.lab.controllers.job_failures import (
    BackoffRecord,
    finish_time,
    is_failed,
    match_pod_failure_policy,
    past_limit_on_failure,
    replaces_only_failed,
)
from chaos.lab.controllers.replicaset import deletion_rank
from chaos.lab.controllers.workload import Key, WorkloadController
from chaos.lab.controllers.workqueue import WorkQueue
from chaos.lab.objects.accessors import (
    Object,
    condition,
    condition_status,
    controller_of,
    is_active,
    is_ready,
    is_terminating,
    name_of,
    namespace_of,
    set_condition,
    uid_of,
)
from chaos.lab.sim.clock import SimClock, seconds_of

_FINALIZER = "batch.kubernetes.io/job-tracking"
_BATCH = 1.0  # syncJobBatchPeriod
_FINISHED_TYPES = ("Complete", "Failed")
_NO_FAILURE = BackoffRecord()


@dataclass(slots=True)
class _SyncContext:
    """One sync. ``status`` is written at its end; ``ending``: the condition that says how the Job ends, if it does."""

    job: Object
    pods: list[Object]
    active: list[Object]
    status: Object
    succeeded: int = 0
    failed: int = 0
    backoff: BackoffRecord = _NO_FAILURE
    finished_condition: Object | None = None


class Jobs(WorkloadController):
    """NonIndexed only; the API refuses the others."""

    plural, kind, owned, component = "jobs", "Job", "pods", "job-controller"
    api_version = "batch/v1"

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        super().__init__(sim, registry)
        self._records: dict[str, BackoffRecord] = {}
        self._orphans: WorkQueue[Key] = WorkQueue(sim, self._release_orphan)

    def restart(self) -> None:
        """A new process looks at every Job, and remembers no back-off."""
        self._records.clear()
        for job in self._store.list(self.plural):
            self._queue.add((namespace_of(job), name_of(job)))

    def _on_change(self, change: Change) -> None:
        """A new spec is acted on at once; pods and statuses are looked at together, a second later."""
        obj, before = change.object, change.before
        same = before is not None and before["metadata"]["generation"] == obj["metadata"]["generation"]
        if change.type == "MODIFIED" and same:
            self._queue.add_after(change.key, _BATCH)
        else:
            self._queue.add(change.key)

    def _on_owned_change(self, change: Change) -> None:
        pod = change.object
        if (owner := controller_of(pod)) is None or owner["kind"] != self.kind:
            return
        self._queue.add_after((change.key[0], owner["name"]), _BATCH)
        job = self._store.get(self.plural, change.key[0], owner["name"])
        if _has_tracking_finalizer(pod) and (job is None or uid_of(job) != owner["uid"]):
            self._orphans.add(change.key)

    def _release_orphan(self, key: Key) -> None:
        """A pod of a Job that is gone."""
        pod = self._store.get("pods", *key)
        if pod is not None:
            self._untrack(pod)

    def sync(self, owner: Object) -> None:
        if any(condition_status(owner, type_) == "True" for type_ in _FINISHED_TYPES):
            self._records.pop(uid_of(owner), None)
            self._expire(owner)
            return
        round_ = self._new_sync_context(owner)
        self._decide(round_)
        status = round_.status
        status["ready"] = sum(map(is_ready, round_.active))
        status["terminating"] = sum(map(is_terminating, round_.pods))
        if round_.finished_condition is not None:
            self._delete(round_, round_.active, counted=True)
            status["active"] = 0
        else:
            status["active"] = self._manage(round_)
            self._emit_suspension(round_)
            completions = owner["spec"].get("completions")
            enough = round_.succeeded > 0 if completions is None else round_.succeeded >= completions
            if enough and not status["active"]:
                round_.finished_condition = self._condition("SuccessCriteriaMet", "", "")
        self._track(round_)

    def _new_sync_context(self, job: Object) -> _SyncContext:
        """What there is, and what has newly ended."""
        status: Object = clone(job["status"])
        pods = self._list_owned(job)
        succeeded = [pod for pod in pods if _has_tracking_finalizer(pod) and pod["status"]["phase"] == "Succeeded"]
        failed = [pod for pod in pods if _has_tracking_finalizer(pod) and is_failed(pod, job)]
        round_ = _SyncContext(job, pods, [pod for pod in pods if is_active(pod)], status)
        round_.succeeded = status.get("succeeded", 0) + len(succeeded)
        round_.failed = status.get("failed", 0) + sum(match_pod_failure_policy(pod, job).is_counted for pod in failed)
        if not job["spec"]["suspend"]:
            status.setdefault("startTime", self._sim.timestamp())
        times = [finish_time(pod) for pod in succeeded], [finish_time(pod) for pod in failed]
        round_.backoff = self._records.get(uid_of(job), _NO_FAILURE).next_record(*times)
        self._records[uid_of(job)] = round_.backoff
        return round_

    def _decide(self, round_: _SyncContext) -> None:
        """Whether the Job has come to its end: what was decided before, podFailurePolicy, backoffLimit, deadline."""
        job, now = round_.job, self._sim.now
        before = condition(job, "SuccessCriteriaMet") or condition(job, "FailureTarget")
        messages = (match_pod_failure_policy(pod, job).message for pod in round_.pods if is_failed(pod, job))
        deadline = None if job["spec"]["suspend"] else job["spec"].get("activeDeadlineSeconds")
        if before is not None:
            round_.finished_condition = before
        elif message := next(filter(None, messages), ""):
            round_.finished_condition = self._condition("FailureTarget", "PodFailurePolicy", message)
        elif round_.failed > job["spec"]["backoffLimit"] or past_limit_on_failure(job, round_.pods):
            text = "Job has reached the specified backoff limit"
            round_.finished_condition = self._condition("FailureTarget", "BackoffLimitExceeded", text)
        elif deadline is not None:
            left = seconds_of(round_.status["startTime"]) + deadline - now
            if left <= 0:
                text = "Job was active longer than specified deadline"
                round_.finished_condition = self._condition("FailureTarget", "DeadlineExceeded", text)
            else:
                self._queue.add_after((namespace_of(job), name_of(job)), left)

    def _manage(self, round_: _SyncContext) -> int:
        """Make or delete pods; how many are active then. manageJob."""
        job, active = round_.job, len(round_.active)
        if job["spec"]["suspend"]:
            self._delete(round_, round_.active, counted=False)
            return 0
        wanted = self._desired_pods(round_)
        surplus = sorted(round_.active, key=deletion_rank)[: max(0, active - wanted)]
        if surplus:
            self._delete(round_, surplus, counted=False)
            return active - len(surplus)
        terminating = round_.status["terminating"] if replaces_only_failed(job) else 0
        missing = max(0, wanted - terminating - active)
        left = round_.backoff.remaining_delay(self._sim.now) if missing else 0.0
        if left > 0:
            self._queue.add_after((namespace_of(job), name_of(job)), left)
            return 0  # as manageJob does, whatever still runs
        for _ in range(missing):
            pod = self._new_pod(job, {})
            pod["metadata"]["finalizers"] = [_FINALIZER]
            self._create_pod(job, pod)
        return active + missing

    def _desired_pods(self, round_: _SyncContext) -> int:
        spec = round_.job["spec"]
        if spec.get("completions") is not None:
            return int(max(0, min(spec["parallelism"], spec["completions"] - round_.succeeded)))
        return len(round_.active) if round_.succeeded else int(spec["parallelism"])

    def _delete(self, round_: _SyncContext, pods: list[Object], *, counted: bool) -> None:
        """Pods that are not needed any more lose their finalizer first, and count as nothing."""
        for pod in pods:
            if not counted:
                self._untrack(pod)
            self._delete_pod(round_.job, pod)
            round_.status["terminating"] += 1
            round_.status["ready"] -= is_ready(pod)

    def _emit_suspension(self, round_: _SyncContext) -> None:
        job, before = round_.job, condition(_wrap_status(round_.status), "Suspended")
        suspended = job["spec"]["suspend"]
        if (before is not None and before["status"] == "True") == suspended:
            return
        word = "Suspended" if suspended else "Resumed"
        new = self._condition("Suspended", f"Job{word}", f"Job {word.lower()}") | {"status": str(suspended)}
        set_condition(_wrap_status(round_.status), new, self._sim.timestamp())
        self._recorder.emit(self.kind, job, word, f"Job {word.lower()}")
        if not suspended:
            round_.status["startTime"] = self._sim.timestamp()

    def _track(self, round_: _SyncContext) -> None:
        """Uncounted pods to the status, finalizers off, counters up, and the end. trackJobStatusAndRemoveFinalizers."""
        uncounted: dict[str, list[str]] = {}
        done = []
        for pod in filter(_has_tracking_finalizer, round_.pods):
            succeeded, failed = pod["status"]["phase"] == "Succeeded", is_failed(pod, round_.job)
            ending = round_.finished_condition["type"] if round_.finished_condition is not None else ""
            if not (succeeded or failed or ending):
                continue
            done.append(pod)
            if succeeded:
                uncounted.setdefault("succeeded", []).append(uid_of(pod))
            elif (failed or ending == "FailureTarget") and match_pod_failure_policy(pod, round_.job).is_counted:
                uncounted.setdefault("failed", []).append(uid_of(pod))
        if round_.finished_condition is not None:
            set_condition(_wrap_status(round_.status), round_.finished_condition, self._sim.timestamp())
        round_.status["uncountedTerminatedPods"] = uncounted
        self._flush(round_)
        for pod in done:
            self._untrack(pod)
        round_.status["uncountedTerminatedPods"] = {}
        for key, uids in uncounted.items():
            round_.status[key] = round_.status.get(key, 0) + len(uids)
        if round_.finished_condition is not None and not round_.status["terminating"]:
            self._finish(round_, round_.finished_condition)
        self._flush(round_)

    def _finish(self, round_: _SyncContext, ending: Object) -> None:
        """enactJobFinished: not before the last pod has ended."""
        complete = ending["type"] == "SuccessCriteriaMet"
        end = self._condition("Complete" if complete else "Failed", ending["reason"], ending["message"])
        set_condition(_wrap_status(round_.status), end, self._sim.timestamp())
        if complete:
            round_.status["completionTime"] = self._sim.timestamp()
            self._recorder.emit(self.kind, round_.job, "Completed", "Job completed")
        else:
            self._recorder.emit(self.kind, round_.job, ending["reason"], ending["message"], type_="Warning")

    def _flush(self, round_: _SyncContext) -> None:
        optional = ("active", "succeeded", "failed")
        status = {key: value for key, value in round_.status.items() if value or key not in optional}
        key = namespace_of(round_.job), name_of(round_.job)
        self._store.patch(self.plural, *key, lambda job: job.update(status=clone(status)))

    def _untrack(self, pod: Object) -> None:
        """Remove the finalizer; a pod that only waited for that is gone then."""
        found = self._store.get("pods", namespace_of(pod), name_of(pod))
        if found is None or uid_of(found) != uid_of(pod) or not _has_tracking_finalizer(found):
            return
        new: Object = clone(found)
        new["metadata"]["finalizers"].remove(_FINALIZER)
        self._registry.update("pods", new)

    def _expire(self, job: Object) -> None:
        """ttlSecondsAfterFinished. pkg/controller/ttlafterfinished."""
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return
        ends = [condition(job, type_) for type_ in _FINISHED_TYPES]
        left = max(seconds_of(item["lastTransitionTime"]) for item in ends if item) + ttl - self._sim.now
        if left > 0:
            self._queue.add_after((namespace_of(job), name_of(job)), left)
        else:
            self._registry.delete(self.plural, namespace_of(job), name_of(job), None, {"uid": uid_of(job)})

    def _condition(self, type_: str, reason: str, message: str) -> Object:
        now = self._sim.timestamp()
        new = {"type": type_, "status": "True", "lastProbeTime": now, "lastTransitionTime": now}
        return {**new, "reason": reason, "message": message}


def _has_tracking_finalizer(pod: Object) -> bool:
    return _FINALIZER in (pod["metadata"].get("finalizers") or [])


def _wrap_status(status: Object) -> Object:
    """The status as part of an object, as the helpers of conditions want it."""
    return {"status": status}
