"""Pods that no node had room for, in the scheduler's words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from chaos.core.kube import Pod, pod_condition
from chaos.core.timeline import History
from chaos.rehearsal.forecast.finding import Case, Finding, FindingKind, seconds_between


def find(case: Case) -> Iterator[Finding]:
    """One finding for each workload: its pods that were not scheduled, without those from before the fault."""
    waits: dict[str, list[tuple[float, bool, str]]] = defaultdict(list)
    for history in case.timeline.pods.values():
        if wait := _wait(history, case):
            waits[case.owners.of(history.last.object)[1]].append(wait)
    for subject, found in sorted(waits.items()):
        lasts = [message for _, lasts, message in found if lasts]
        reason = Counter(lasts or [message for *_, message in found]).most_common(1)[0][0]
        yield Finding(FindingKind.NO_ROOM, subject, len(found), max(found)[0], bool(lasts), reason)


def _wait(history: History[Pod], case: Case) -> tuple[float, bool, str] | None:
    """Seconds in which the pod was unschedulable, whether it still was at the end, and the last reason."""
    if (before := history.at(case.fault)) is not None and _reason(before.object):
        return None
    begin, message = None, ""
    for version in history.after(case.fault):
        reason = "" if version.is_deleted else _reason(version.object)
        if reason:
            begin, message = version.t if begin is None else begin, reason
        elif begin is not None:
            return seconds_between(begin, version.t), False, message
    return None if begin is None else (seconds_between(begin, case.end), True, message)


def _reason(pod: Pod) -> str:
    """The scheduler's message on a pod that it could not place."""
    scheduled = pod_condition(pod, "PodScheduled")
    is_waiting = scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable"
    return (scheduled.message or "unschedulable") if scheduled and is_waiting else ""
