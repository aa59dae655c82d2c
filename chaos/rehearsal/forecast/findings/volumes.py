"""Pods that wait for a volume which is still attached to the lost node: six minutes (facts 7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from chaos.core.kube import Pod
from chaos.core.timeline import History
from chaos.rehearsal.forecast.finding import Case, Finding, FindingKind, seconds_between

_LONG = 60.0  # seconds; a volume that is free is attached within a few


def find(case: Case) -> Iterator[Finding]:
    """One finding for each workload."""
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
