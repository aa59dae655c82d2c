"""Lanes of a timeline that grows: only those whose object changed are made again."""

from __future__ import annotations

import math
from collections.abc import Collection

from chaos.core.timeline import Entry, Timeline
from chaos.reports.run.page.timeline_lanes import Lane, Position, node_lane, pod_lane, position

_KINDS = {"nodes": "node", "pods": "pod"}


class LiveLanes:
    """The lanes of ``timeline`` in their order, as :func:`chaos.reports.run.page.timeline_lanes.lanes` has them.

    What lasts at the end of the timeline has no end here: its end is infinite. Call :meth:`note` for every entry that
    was added, then :meth:`update`.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.ordered: list[Lane] = []
        self._timeline = timeline
        self._lanes: dict[str, dict[str, Lane]] = {"node": {}, "pod": {}}  # by kind and key, oldest first
        self._positions: dict[tuple[str, str], Position] = {}
        self._changed: dict[tuple[str, str], None] = {}  # a set in the order of the entries
        self._targets: frozenset[str] = frozenset()

    def note(self, entry: Entry) -> None:
        """Remember whose lane the entry changes."""
        if kind := _KINDS.get(entry.kind):
            metadata = entry.object.metadata
            if kind == "node" or metadata.uid in self._timeline.pods:
                self._changed[kind, metadata.name if kind == "node" else metadata.uid] = None

    def update(self, targets: Collection[str]) -> tuple[bool, set[str]]:
        """Whether any lane has changed, and the keys of those that are new or have another place than before."""
        changed, self._changed = self._changed, {}
        for kind, key in changed:
            self._lanes[kind][key] = self._make(kind, key)
        is_whole = frozenset(targets) != self._targets
        self._targets = frozenset(targets)
        moved = self._move(list(self._positions) if is_whole else []) | self._move(list(changed))
        if changed or moved:
            self._arrange(is_sorted=not moved)
        return bool(changed or moved), {key for _, key in moved}

    def _make(self, kind: str, key: str) -> Lane:
        timeline = self._timeline
        if kind == "node":
            return node_lane(key, timeline.nodes[key], math.inf)
        return pod_lane(key, timeline.pods[key], timeline.start, math.inf)

    def _move(self, keys: list[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of ``keys`` whose place is another one now."""
        moved = set()
        for kind, key in keys:
            lane = self._lanes[kind][key]
            if kind == "pod" and not lane.spans:
                continue
            place = position(lane, self._targets)
            if self._positions.get((kind, key)) != place:
                self._positions[kind, key] = place
                moved.add((kind, key))
        return moved

    def _arrange(self, *, is_sorted: bool) -> None:
        lanes = self._lanes
        if is_sorted:
            self.ordered = [lanes[lane.kind][lane.key] for lane in self.ordered]
            return
        shown = (lane for kind in ("node", "pod") for lane in lanes[kind].values() if kind == "node" or lane.spans)
        self.ordered = sorted(shown, key=lambda lane: self._positions[lane.kind, lane.key])
