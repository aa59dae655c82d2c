"""Pod failures of a Job: which count, podFailurePolicy, back-off. Pure.

pkg/controller/job: pod_failure_policy.go, backoff_utils.go, job_controller.go.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.lab.objects import Object, condition, is_deleting, name_of, namespace_of
from chaos.lab.sim import seconds_of, transition_time


def replaces_only_failed(job: Object) -> bool:
    """Whether a terminating pod is replaced only once it is terminal."""
    return bool(job["spec"]["podReplacementPolicy"] == "Failed")


def is_failed(pod: Object, job: Object) -> bool:
    """Whether the pod counts as failed: a deleted pod does immediately, unless only failed pods are replaced."""
    phase = pod["status"]["phase"]
    if phase == "Failed":
        return True
    return not replaces_only_failed(job) and is_deleting(pod) and phase != "Succeeded"


@dataclass(frozen=True, slots=True)
class PodFailureMatch:
    """``action`` of the first matching rule, empty if none matches; ``message`` only for FailJob."""

    action: str = ""
    message: str = ""

    @property
    def is_counted(self) -> bool:
        """Whether the failure counts towards backoffLimit."""
        return self.action != "Ignore"


def match_pod_failure_policy(pod: Object, job: Object) -> PodFailureMatch:
    """Match a failed pod against the Job's podFailurePolicy."""
    for index, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or []):
        cause = _match_rule(pod, rule)
        if cause:
            action = rule["action"]
            where = f"matching {action} rule at index {index}"
            return PodFailureMatch(action, f"{cause} {where}" if action == "FailJob" else "")
    return PodFailureMatch()


def _match_rule(pod: Object, rule: Object) -> str:
    where = f"{namespace_of(pod)}/{name_of(pod)}"
    if rule.get("onExitCodes"):
        for status in pod["status"].get("containerStatuses") or []:
            code = status["state"].get("terminated", {}).get("exitCode", 0)
            if code and _matches_code(status["name"], code, rule["onExitCodes"]):
                return f"Container {status['name']} for pod {where} failed with exit code {code}"
        return ""
    for item in pod["status"].get("conditions") or []:
        for pattern in rule["onPodConditions"]:
            if (item["type"], item["status"]) == (pattern["type"], pattern["status"]):
                return f"Pod {where} has condition {item['type']}"
    return ""


def _matches_code(container: str, code: int, requirement: Object) -> bool:
    if requirement.get("containerName") not in (None, container):
        return False
    return bool((code in requirement["values"]) == (requirement["operator"] == "In"))


def past_limit_on_failure(job: Object, pods: list[Object]) -> bool:
    """Whether container restarts exceed backoffLimit, with restartPolicy OnFailure. pastBackoffLimitOnFailure."""
    if job["spec"]["template"]["spec"]["restartPolicy"] != "OnFailure":
        return False
    restarts = sum(
        status["restartCount"]
        for pod in pods
        if pod["status"]["phase"] in ("Running", "Pending")
        for status in pod["status"].get("containerStatuses") or []
    )
    limit = job["spec"]["backoffLimit"]
    return bool(restarts >= limit) if limit else restarts > 0


def finish_time(pod: Object) -> float:
    """Time at which the last container ended, else the pod became unready, else it was deleted or created."""
    statuses = pod["status"].get("containerStatuses") or []
    ends = [status["state"].get("terminated", {}).get("finishedAt") for status in statuses]
    if ends and all(ends):
        return max(map(seconds_of, ends))
    ready, metadata = condition(pod, "Ready"), pod["metadata"]
    if ready is not None and ready["status"] == "False":
        return transition_time(ready)
    if is_deleting(pod):
        return seconds_of(metadata["deletionTimestamp"]) - float(metadata.get("deletionGracePeriodSeconds", 0))
    return seconds_of(metadata["creationTimestamp"])


@dataclass(frozen=True, slots=True)
class BackoffRecord:
    """Number of failures since the last success, and time of the last one. In the controller's memory only."""

    failures: int = 0
    last_failure_time: float = 0.0

    def next_record(self, succeeded: list[float], failed: list[float]) -> BackoffRecord:
        """Record after these further times of successes and failures."""
        if succeeded:
            failed = [when for when in failed if when > max(succeeded)]
            return BackoffRecord(len(failed), max(failed, default=0.0))
        return BackoffRecord(self.failures + len(failed), max(failed)) if failed else self

    def remaining_delay(self, now: float, backoff: tuple[float, float]) -> float:
        """Seconds until a pod may be created; ``backoff``: the first and the longest delay."""
        if not self.failures:
            return 0.0
        first, longest = backoff
        return max(0.0, self.last_failure_time + min(first * 2.0 ** min(self.failures - 1, 10), longest) - now)
