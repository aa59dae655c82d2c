"""Lanes and rows of observations of a timeline that grows: only those that changed are made again."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any

from chaos.core.recording import EntryKind
from chaos.core.text import printable
from chaos.core.timeline import Entry, Timeline
from chaos.reports.run.describe import describe
from chaos.reports.run.page.changes import News, object_diff, object_identity, select
from chaos.reports.run.page.lanes import Lane, Position, lane_of, node_lane, pod_lane, position
from chaos.reports.run.page.page_data import MAX_OBSERVATIONS, PageClock

_KINDS = {"nodes": "node", "pods": "pod"}


class LiveLanes:
    """The lanes of ``timeline`` in their order, as :func:`chaos.reports.run.page.lanes.lanes` has them.

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


class LiveRows:
    """The rows that :func:`chaos.reports.run.page.changes.observations` selects, as JSON by sequence number.

    A row is ``[seq, at, kind, key of the lane or "", text, isFirst, [[path, before, after]]]``.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._news = News()
        self._candidates: dict[int, bool] = {}  # entries that may be rows, and whether they are new
        self._last: dict[tuple[str, str], Any] = {}
        self._before: dict[int, Any] = {}  # the version of the object before that of the entry
        self._texts: dict[int, str] = {}
        self._unplaced: set[int] = set()  # events about an object that was not observed yet

    def note(self, entry: Entry) -> None:
        """Take the next entry of the timeline."""
        is_new = self._news.is_new(entry)
        if is_new or entry.kind == EntryKind.ACTION:
            self._candidates[entry.seq] = is_new
        if (key := object_identity(entry)) is not None:
            before = self._last.get(key)
            if before is not None:
                self._before[entry.seq] = before
            self._last[key] = entry.object

    def restart(self) -> None:
        """Forget the texts, as times have another origin."""
        self._texts.clear()
        self._unplaced.clear()

    def update(self, cited: set[int], clock: PageClock) -> tuple[dict[int, str], int]:
        """All rows by sequence number, in their order, and the number of changes that are omitted."""
        entries = self._timeline.entries
        more = [seq for seq in cited if seq < len(entries) and seq not in self._candidates]
        seqs = sorted([*self._candidates, *more]) if more else list(self._candidates)
        rows, omitted = select(
            ((entries[seq], self._candidates.get(seq, False)) for seq in seqs), cited, MAX_OBSERVATIONS
        )
        for seq in [seq for seq in self._unplaced if lane_of(entries[seq], self._timeline)]:
            self._unplaced.discard(seq)
            self._texts.pop(seq, None)
        return {entry.seq: self._texts.get(entry.seq) or self._make(entry, clock) for entry in rows}, omitted

    def _make(self, entry: Entry, clock: PageClock) -> str:
        before, lane = self._before.get(entry.seq), lane_of(entry, self._timeline)
        if not lane and entry.kind == "events":
            self._unplaced.add(entry.seq)
        changes = [] if before is None else object_diff(before, entry.object)
        shown = [[printable(part) for part in change] for change in changes]
        words = printable(entry.kind), lane, printable(describe(entry))
        text = json.dumps([entry.seq, clock.at(entry.t), *words, int(before is None), shown], separators=(",", ":"))
        self._texts[entry.seq] = text
        return text
