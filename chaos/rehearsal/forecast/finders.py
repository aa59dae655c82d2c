"""What was lost in a run: one finder per kind of finding, and all findings together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from chaos.core.kube import (
    Node,
    Pod,
    PodDisruptionBudget,
    Taint,
    controller_of,
    is_finished,
    is_ready,
    is_static,
    phase,
    pod_condition,
)
from chaos.core.timeline import History, Version
from chaos.rehearsal.forecast.sample import Case, Finding, FindingKind, outages, seconds_between


def _find_lost(case: Case) -> Iterator[Finding]:
    """Workloads without a serving pod, one finding each; and each pod that nothing replaces."""
    for outage in outages(case):
        if not outage.none:
            continue
        kind = FindingKind.SINGLE_REPLICA if outage.before == 1 else FindingKind.NO_REPLICA_LEFT
        pods = "the one serving pod" if outage.before == 1 else f"all {outage.before} serving pods"
        detail = f"{pods} of the {outage.kind} ended, or its machine was off or unreachable"
        yield Finding(kind, outage.name, outage.before, outage.none, outage.lasts, detail)
    for history in case.timeline.pods.values():
        if _is_lost(history, case):
            name = case.owners.of(history.last.object)[1]
            yield Finding(FindingKind.POD_LOST, name, 1, None, True, "no controller replaces it")


def _is_lost(history: History[Pod], case: Case) -> bool:
    """Whether a pod without a controller ran before the fault, and was removed or failed after it.

    One that ends by itself, as it may on a machine that stays up, is not lost.
    """
    before, last = history.at(case.fault), history.last
    if before is None or before.is_deleted or is_finished(before.object):
        return False
    if controller_of(last.object) is not None or is_static(last.object):
        return False
    node = last.object.spec.node_name if last.object.spec else ""
    return last.is_deleted or phase(last.object) == "Failed" or (node in case.down and is_finished(last.object))


def _find_no_room(case: Case) -> Iterator[Finding]:
    """Pods that no node had room for, in the scheduler's words: one finding for each workload.

    Its pods that were not scheduled count, without those from before the fault.
    """
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


def _find_overdrawn(case: Case) -> Iterator[Finding]:
    """Each budget with fewer healthy pods than it demands, unless it had too few before the fault.

    An involuntary disruption does not ask.
    """
    for (namespace, name), history in sorted(case.timeline.poddisruptionbudgets.items()):
        before = history.at(case.fault)
        if before is None or before.is_deleted or _deficit(before.object):
            continue
        begin, seconds, worst = None, 0.0, 0
        for version in history.after(case.fault):
            deficit = 0 if version.is_deleted else _deficit(version.object)
            worst = max(worst, deficit)
            if deficit and begin is None:
                begin = version.t
            elif not deficit and begin is not None:
                seconds, begin = seconds + seconds_between(begin, version.t), None
        if not worst:
            continue
        lasts = begin is not None
        seconds += seconds_between(begin, case.end) if begin is not None else 0.0
        status = before.object.status
        demanded = status.desired_healthy if status else 0
        detail = f"{worst} below the {demanded} healthy pods that it demands"
        yield Finding(
            FindingKind.BUDGET_OVERDRAWN, case.owners.name(namespace, name), worst, round(seconds, 3), lasts, detail
        )


def _deficit(budget: PodDisruptionBudget) -> int:
    status = budget.status
    return max(0, (status.desired_healthy or 0) - (status.current_healthy or 0)) if status else 0


_SLACK = 10.0  # seconds beyond the grace period, which a kubelet that is there does not need


def _find_stuck(case: Case) -> Iterator[Finding]:
    """StatefulSets whose pods stay Terminating on a lost node, so that none of the same name can follow."""
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


_LONG = 60.0  # seconds; a volume that is free is attached within a few


def _find_volume_waits(case: Case) -> Iterator[Finding]:
    """Workloads whose pods wait for a volume that is still attached to the lost node: six minutes (facts 7)."""
    found: dict[str, list[tuple[float, bool, str]]] = defaultdict(list)
    for history in case.timeline.pods.values():
        for seconds, lasts, volume in _waits(history, case):
            if seconds > _LONG:
                found[case.owners.of(history.last.object)[1]].append((seconds, lasts, volume))
    for subject, waits in sorted(found.items()):
        seconds, _, volume = max(waits)
        detail = f"volume {volume} stays attached to the lost node"
        yield Finding(FindingKind.VOLUME_WAIT, subject, len(waits), seconds, any(w[1] for w in waits), detail)


def _waits(history: History[Pod], case: Case) -> Iterator[tuple[float, bool, str]]:
    """Seconds from a pod's binding after the fault to each of its attachments, and whether there is none yet."""
    before = history.at(case.fault)
    if before is not None and before.object.spec and before.object.spec.node_name:
        return
    bound = next((v for v in history.after(case.fault) if v.object.spec and v.object.spec.node_name), None)
    if bound is None or bound.object.spec is None:
        return
    end = history.last.t if history.last.is_deleted else case.end
    for claim in bound.object.spec.volumes or ():
        volume = (
            _volume(case, history.last.object, claim.persistent_volume_claim.claim_name)
            if (claim.persistent_volume_claim)
            else ""
        )
        if volume and _was_attached_elsewhere(case, volume, bound.object.spec.node_name or ""):
            attached = _attached(case, volume, bound.object.spec.node_name or "")
            yield seconds_between(bound.t, min(attached or end, end)), attached is None, volume


def _volume(case: Case, pod: Pod, claim: str) -> str:
    history = case.timeline.persistentvolumeclaims.get((pod.metadata.namespace, claim))
    spec = history.last.object.spec if history else None
    return (spec.volume_name if spec else None) or ""


def _was_attached_elsewhere(case: Case, volume: str, node: str) -> bool:
    for history in case.timeline.volumeattachments.values():
        before = history.at(case.fault)
        if before is not None and not before.is_deleted and before.object.spec and before.object.spec.source:
            spec = before.object.spec
            if spec.source and spec.source.persistent_volume_name == volume and spec.node_name != node:
                return True
    return False


def _attached(case: Case, volume: str, node: str) -> float | None:
    """When the volume was attached to the node."""
    for history in case.timeline.volumeattachments.values():
        spec = history.last.object.spec
        if spec and spec.source and spec.source.persistent_volume_name == volume and spec.node_name == node:
            for version in history:
                if version.object.status and version.object.status.attached:
                    return version.t
    return None


_AT_ONCE = 5.0  # seconds; the first node of a zone is tainted with its condition
_PATIENCE = 60.0  # seconds without a taint after which it is said to be withheld
_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def _find_delayed(case: Case) -> Iterator[Finding]:
    """Nodes whose pods were evicted late, or not at all, by the limits of their zone (facts 5.5)."""
    for name, history in sorted(case.timeline.nodes.items()):
        lost = next((v for v in history.after(case.fault) if not v.is_deleted and not is_ready(v.object)), None)
        if lost is None:
            continue
        ended, is_tainted = _taint_or_end(history, lost, case)
        seconds = seconds_between(lost.t, ended)
        if is_tainted and seconds > _AT_ONCE:
            detail = "tainted NoExecute late: the rate of its zone is limited"
            yield Finding(FindingKind.EVICTION_DELAYED, name, 1, seconds, False, detail)
        elif not is_tainted and seconds > _PATIENCE:
            detail = "not tainted NoExecute while it was lost: its pods stay, as most nodes of the zone are lost"
            yield Finding(FindingKind.EVICTION_DELAYED, name, 1, seconds, ended == case.end, detail)


def _taint_or_end(history: History[Node], lost: Version[Node], case: Case) -> tuple[float, bool]:
    """When the lost node was tainted, or was no longer lost; and whether it was the taint."""
    for version in history.versions:
        if version.t < lost.t:
            continue
        if any(taint.key in _KEYS and taint.effect == "NoExecute" for taint in _taints(version.object)):
            return version.t, True
        if version.is_deleted or is_ready(version.object):
            return version.t, False
    return case.end, False


def _taints(node: Node) -> list[Taint]:
    return (node.spec.taints if node.spec else None) or []


_FINDERS = (_find_lost, _find_no_room, _find_overdrawn, _find_stuck, _find_volume_waits, _find_delayed)
_ORDER = {kind: index for index, kind in enumerate(FindingKind)}


def findings_of(case: Case) -> tuple[Finding, ...]:
    """All findings, by kind, then by subject."""
    found = [finding for find in _FINDERS for finding in find(case)]
    return tuple(sorted(found, key=lambda finding: (_ORDER[finding.kind], finding.subject)))
