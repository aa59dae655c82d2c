"""Job controller: pods until enough have succeeded or too many have failed, each counted exactly once. Facts 5.7.

A sync has the order of pkg/controller/job/job_controller.go: evaluate pods that have ended, create or delete pods,
write the status with uncounted pods, remove their finalizers, count them.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change, clone
from chaos.lab.controllers.job_failures import (
    BackoffRecord,
    finish_time,
    is_failed,
    match_pod_failure_policy,
    past_limit_on_failure,
    replaces_only_failed,
)
from chaos.lab.controllers.replicaset import deletion_rank
from chaos.lab.controllers.workload import Key, WorkloadController, WorkQueue
from chaos.lab.objects import (
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
from chaos.lab.sim import SimClock, seconds_of, transition_time

_FINALIZER = "batch.kubernetes.io/job-tracking"
_BATCH = 1.0  # syncJobBatchPeriod
_FINISHED_TYPES = ("Complete", "Failed")
_NO_FAILURE = BackoffRecord()


@dataclass(slots=True)
class _SyncContext:
    """Context of one sync. ``status`` is written at its end; ``finished_condition`` is set if the Job ends."""

    job: Object
    pods: list[Object]
    active: list[Object]
    status: Object
    succeeded: int = 0
    failed: int = 0
    backoff: BackoffRecord = _NO_FAILURE
    finished_condition: Object | None = None


class Jobs(WorkloadController):
    """Syncs NonIndexed Jobs; the API server rejects others."""

    plural, kind, owned, component = "jobs", "Job", "pods", "job-controller"
    api_version = "batch/v1"

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        super().__init__(sim, registry)
        self._records: dict[str, BackoffRecord] = {}
        self._orphans: WorkQueue[Key] = WorkQueue(sim, self._release_orphan)

    def restart(self) -> None:
        """Start a new process: sync every Job; back-offs are lost."""
        self._records.clear()
        for job in self._store.list(self.plural):
            self._queue.add((namespace_of(job), name_of(job)))

    def _on_change(self, change: Change) -> None:
        """Queue a new spec immediately, and a new status after 1 s, batched with changes of pods."""
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
        """Remove the finalizer of a pod whose Job is gone."""
        pod = self._store.get("pods", *key)
        if pod is not None:
            self._untrack(pod)

    def sync(self, owner: Object) -> None:
        if not self._registry.rules.workloads.jobs_heed_failure_policy:
            owner = {**owner, "spec": {**owner["spec"], "podFailurePolicy": None}}
        if any(condition_status(owner, type_) == "True" for type_ in _FINISHED_TYPES):
            self._records.pop(uid_of(owner), None)
            self._expire(owner)
            return
        context = self._new_sync_context(owner)
        self._decide(context)
        status = context.status
        status["ready"] = sum(map(is_ready, context.active))
        status["terminating"] = sum(map(is_terminating, context.pods))
        if context.finished_condition is not None:
            self._delete(context, context.active, counted=True)
            status["active"] = 0
        else:
            status["active"] = self._manage(context)
            self._emit_suspension(context)
            completions = owner["spec"].get("completions")
            enough = context.succeeded > 0 if completions is None else context.succeeded >= completions
            if enough and not status["active"]:
                context.finished_condition = self._condition("SuccessCriteriaMet", "", "")
        self._track(context)

    def _new_sync_context(self, job: Object) -> _SyncContext:
        """Collect the Job's pods, and count those that have ended since the last sync."""
        status: Object = clone(job["status"])
        pods = self._list_owned(job)
        succeeded = [pod for pod in pods if _has_tracking_finalizer(pod) and pod["status"]["phase"] == "Succeeded"]
        failed = [pod for pod in pods if _has_tracking_finalizer(pod) and is_failed(pod, job)]
        context = _SyncContext(job, pods, [pod for pod in pods if is_active(pod)], status)
        context.succeeded = status.get("succeeded", 0) + len(succeeded)
        context.failed = status.get("failed", 0) + sum(match_pod_failure_policy(pod, job).is_counted for pod in failed)
        if not job["spec"]["suspend"]:
            status.setdefault("startTime", self._sim.timestamp())
        times = [finish_time(pod) for pod in succeeded], [finish_time(pod) for pod in failed]
        context.backoff = self._records.get(uid_of(job), _NO_FAILURE).next_record(*times)
        self._records[uid_of(job)] = context.backoff
        return context

    def _decide(self, context: _SyncContext) -> None:
        """Evaluate an earlier decision, podFailurePolicy, backoffLimit and deadline; set ``finished_condition``."""
        job, now = context.job, self._sim.now
        before = condition(job, "SuccessCriteriaMet") or condition(job, "FailureTarget")
        messages = (match_pod_failure_policy(pod, job).message for pod in context.pods if is_failed(pod, job))
        deadline = None if job["spec"]["suspend"] else job["spec"].get("activeDeadlineSeconds")
        if before is not None:
            context.finished_condition = before
        elif message := next(filter(None, messages), ""):
            context.finished_condition = self._condition("FailureTarget", "PodFailurePolicy", message)
        elif context.failed > job["spec"]["backoffLimit"] or past_limit_on_failure(job, context.pods):
            text = "Job has reached the specified backoff limit"
            context.finished_condition = self._condition("FailureTarget", "BackoffLimitExceeded", text)
        elif deadline is not None:
            remaining = seconds_of(context.status["startTime"]) + deadline - now
            if remaining <= 0:
                text = "Job was active longer than specified deadline"
                context.finished_condition = self._condition("FailureTarget", "DeadlineExceeded", text)
            else:
                self._queue.add_after((namespace_of(job), name_of(job)), remaining)

    def _manage(self, context: _SyncContext) -> int:
        """Create or delete pods and return the number of active ones. manageJob."""
        job, active = context.job, len(context.active)
        if job["spec"]["suspend"]:
            self._delete(context, context.active, counted=False)
            return 0
        desired = self._desired_pods(context)
        surplus = sorted(context.active, key=deletion_rank)[: max(0, active - desired)]
        if surplus:
            self._delete(context, surplus, counted=False)
            return active - len(surplus)
        terminating = context.status["terminating"] if replaces_only_failed(job) else 0
        missing = max(0, desired - terminating - active)
        remaining = (
            context.backoff.remaining_delay(self._sim.now, self._registry.rules.workloads.job_backoff)
            if missing
            else 0.0
        )
        if remaining > 0:
            self._queue.add_after((namespace_of(job), name_of(job)), remaining)
            return 0  # as in manageJob, even if pods are running
        for _ in range(missing):
            pod = self._new_pod(job, {})
            pod["metadata"]["finalizers"] = [_FINALIZER]
            self._create_pod(job, pod)
        return active + missing

    def _desired_pods(self, context: _SyncContext) -> int:
        spec = context.job["spec"]
        if spec.get("completions") is not None:
            return int(max(0, min(spec["parallelism"], spec["completions"] - context.succeeded)))
        return len(context.active) if context.succeeded else int(spec["parallelism"])

    def _delete(self, context: _SyncContext, pods: list[Object], *, counted: bool) -> None:
        """Delete pods; first remove the finalizer of those that are not ``counted``."""
        for pod in pods:
            if not counted:
                self._untrack(pod)
            self._delete_pod(context.job, pod)
            context.status["terminating"] += 1
            context.status["ready"] -= is_ready(pod)

    def _emit_suspension(self, context: _SyncContext) -> None:
        job, before = context.job, condition(_wrap_status(context.status), "Suspended")
        suspended = job["spec"]["suspend"]
        if (before is not None and before["status"] == "True") == suspended:
            return
        word = "Suspended" if suspended else "Resumed"
        new = self._condition("Suspended", f"Job{word}", f"Job {word.lower()}") | {"status": str(suspended)}
        set_condition(_wrap_status(context.status), new, self._sim.timestamp())
        self._recorder.emit(self.kind, job, word, f"Job {word.lower()}")
        if not suspended:
            context.status["startTime"] = self._sim.timestamp()

    def _track(self, context: _SyncContext) -> None:
        """Write uncounted pods to the status, remove finalizers, count them. trackJobStatusAndRemoveFinalizers."""
        uncounted: dict[str, list[str]] = {}
        done = []
        for pod in filter(_has_tracking_finalizer, context.pods):
            succeeded, failed = pod["status"]["phase"] == "Succeeded", is_failed(pod, context.job)
            end_condition = context.finished_condition["type"] if context.finished_condition is not None else ""
            if not (succeeded or failed or end_condition):
                continue
            done.append(pod)
            if succeeded:
                uncounted.setdefault("succeeded", []).append(uid_of(pod))
            elif (failed or end_condition == "FailureTarget") and match_pod_failure_policy(pod, context.job).is_counted:
                uncounted.setdefault("failed", []).append(uid_of(pod))
        if context.finished_condition is not None:
            set_condition(_wrap_status(context.status), context.finished_condition, self._sim.timestamp())
        context.status["uncountedTerminatedPods"] = uncounted
        self._flush(context)
        for pod in done:
            self._untrack(pod)
        context.status["uncountedTerminatedPods"] = {}
        for key, uids in uncounted.items():
            context.status[key] = context.status.get(key, 0) + len(uids)
        if context.finished_condition is not None and not context.status["terminating"]:
            self._finish(context, context.finished_condition)
        self._flush(context)

    def _finish(self, context: _SyncContext, end_condition: Object) -> None:
        """Finish the Job once its last pod has ended. enactJobFinished."""
        complete = end_condition["type"] == "SuccessCriteriaMet"
        end = self._condition("Complete" if complete else "Failed", end_condition["reason"], end_condition["message"])
        set_condition(_wrap_status(context.status), end, self._sim.timestamp())
        if complete:
            context.status["completionTime"] = self._sim.timestamp()
            self._recorder.emit(self.kind, context.job, "Completed", "Job completed")
        else:
            self._recorder.emit(
                self.kind, context.job, end_condition["reason"], end_condition["message"], type_="Warning"
            )

    def _flush(self, context: _SyncContext) -> None:
        optional = ("active", "succeeded", "failed")
        status = {key: value for key, value in context.status.items() if value or key not in optional}
        key = namespace_of(context.job), name_of(context.job)
        self._store.patch(self.plural, *key, lambda job: job.update(status=clone(status)))

    def _untrack(self, pod: Object) -> None:
        """Remove the finalizer; with it a deleted pod is removed."""
        found = self._store.get("pods", namespace_of(pod), name_of(pod))
        if found is None or uid_of(found) != uid_of(pod) or not _has_tracking_finalizer(found):
            return
        new: Object = clone(found)
        new["metadata"]["finalizers"].remove(_FINALIZER)
        self._registry.update("pods", new)

    def _expire(self, job: Object) -> None:
        """Delete the Job after ttlSecondsAfterFinished. pkg/controller/ttlafterfinished."""
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return
        ends = [condition(job, type_) for type_ in _FINISHED_TYPES]
        remaining = max(transition_time(item) for item in ends if item) + ttl - self._sim.now
        if remaining > 0:
            self._queue.add_after((namespace_of(job), name_of(job)), remaining)
        else:
            self._registry.delete(self.plural, namespace_of(job), name_of(job), None, {"uid": uid_of(job)})

    def _condition(self, type_: str, reason: str, message: str) -> Object:
        now = self._sim.timestamp()
        new = {"type": type_, "status": "True", "lastProbeTime": now, "lastTransitionTime": now}
        return {**new, "reason": reason, "message": message}


def _has_tracking_finalizer(pod: Object) -> bool:
    return _FINALIZER in (pod["metadata"].get("finalizers") or [])


def _wrap_status(status: Object) -> Object:
    """An object with this status, for the accessors of conditions."""
    return {"status": status}
