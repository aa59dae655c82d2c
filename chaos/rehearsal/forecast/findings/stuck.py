"""Pods of StatefulSets that stay Terminating on a lost node, so that none of the same name can follow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from chaos.core.kube import Pod
from chaos.core.timeline import History
from chaos.rehearsal.forecast.finding import Case, Finding, FindingKind, seconds_between

_SLACK = 10.0  # seconds beyond the grace period, which a kubelet that is there does not need


def find(case: Case) -> Iterator[Finding]:
    """One finding for each StatefulSet."""
    found: dict[str, list[tuple[float, bool, str]]] = defaultdict(list)
    for history in case.timeline.pods.values():
        kind, subject = case.owners.of(history.last.object)
        if kind == "StatefulSet" and (stuck := _stuck(history, case)):
            found[subject].append((*stuck, history.last.object.metadata.name))
    for subject, pods in sorted(found.items()):
        names = ", ".join(sorted(name for *_, name in pods)[:4])
        detail = f"{names}: deleted, but the kubelet of the node does not confirm the end"
        yield Finding(FindingKind.STUCK_TERMINATING, subject, len(pods), max(pods)[0], any(p[1] for p in pods), detail)


def _stuck(history: History[Pod], case: Case) -> tuple[float, bool] | None:
    """Seconds from the deletion to the removal, and whether the pod is still there; None within its grace period."""
    deleted = next((v for v in history.after(case.fault) if v.object.metadata.deletion_timestamp), None)
    if deleted is None:
        return None
    last = history.last
    seconds = seconds_between(deleted.t, last.t if last.is_deleted else case.end)
    grace = deleted.object.metadata.deletion_grace_period_seconds or 0
    return (seconds, not last.is_deleted) if seconds > grace + _SLACK else None
