"""Measures of volumes: when they were detached, and attached to another node. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.history import Version
from chaos.core.kube import VolumeAttachment
from chaos.core.timeline import Timeline
from chaos.verdicts.outcome.measure import Kind, Measure
from chaos.verdicts.outcome.names import Names

ELSEWHERE = "attached to another node"


def volume_measures(timeline: Timeline, start: float, names: Names) -> Iterator[tuple[Measure, float]]:
    """Measures of each claim whose volume was attached at ``start``, and times since the epoch."""
    claims = _claims(timeline, names)
    homes: dict[str, str] = {}
    for history in timeline.volumeattachments.values():
        before = history.at(start)
        if before is None or not _is_attached(before):
            continue
        claim, node = claims.get(_volume(before.object), _volume(before.object)), _node(before.object)
        homes[claim] = node
        ended = next((version.t for version in history.after(start) if not _is_attached(version)), None)
        if ended is not None:
            yield Measure(Kind.VOLUME, claim, f"detached from {names.node(node)}"), ended
    elsewhere: dict[str, float] = {}
    for history in timeline.volumeattachments.values():
        obj = history.last.object
        claim = claims.get(_volume(obj), _volume(obj))
        attached = next((version.t for version in history.after(start) if _is_attached(version)), None)
        if attached is not None and claim in homes and _node(obj) != homes[claim]:
            elsewhere[claim] = min(attached, elsewhere.get(claim, attached))
    for claim, t in elsewhere.items():
        yield Measure(Kind.VOLUME, claim, ELSEWHERE), t


def _claims(timeline: Timeline, names: Names) -> dict[str, str]:
    """NAMESPACE/NAME of the claim of each PersistentVolume, by the volume's name."""
    return {
        history.last.object.spec.volume_name: names.object(namespace, name)
        for (namespace, name), history in timeline.persistentvolumeclaims.items()
        if history.last.object.spec and history.last.object.spec.volume_name
    }


def _is_attached(version: Version[VolumeAttachment]) -> bool:
    status = version.object.status
    return not version.is_deleted and bool(status and status.attached)


def _volume(obj: VolumeAttachment) -> str:
    source = obj.spec.source if obj.spec else None
    return (source and source.persistent_volume_name) or obj.metadata.name


def _node(obj: VolumeAttachment) -> str:
    return obj.spec.node_name if obj.spec else ""
