"""Lanes that a run affected: its targets, their pods, the replacements of these, and what verdicts cite."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from chaos.reports.run.page.timeline_lanes import Lane


def affected_lanes(lanes: Sequence[Lane], targets: Collection[str], cited: Collection[str], since: float) -> list[bool]:
    """Whether each lane is affected. ``cited``: keys of the lanes that evidence belongs to; ``since``: epoch seconds.

    Nodes that are targets or whose condition changed; pods that changed and are on a target, or have the owner of one
    that is. Only changes after ``since`` count.
    """
    owners = {
        (lane.namespace, lane.owner)
        for lane in lanes
        if lane.kind == "pod" and lane.group in targets and _has_changed(lane, since) and _is_replaced(lane)
    }

    def is_affected(lane: Lane) -> bool:
        if lane.key in cited:
            return True
        if lane.kind == "node":
            return lane.key in targets or (len(lane.spans) > 1 and _has_changed(lane, since))
        return (lane.group in targets or (lane.namespace, lane.owner) in owners) and _has_changed(lane, since)

    return [is_affected(lane) for lane in lanes]


def _has_changed(lane: Lane, since: float) -> bool:
    if not lane.has_changes:
        return False
    return lane.spans[-1].start >= since or any(mark.t >= since for mark in lane.marks)


def _is_replaced(lane: Lane) -> bool:
    """Whether another node may get a replacement of the pod."""
    return bool(lane.owner) and not lane.owner.startswith("DaemonSet/")
