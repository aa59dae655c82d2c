"""Rows of the observations table of a timeline that grows."""

from __future__ import annotations

import json
from typing import Any

from chaos.core.recording import EntryKind
from chaos.core.text import printable
from chaos.core.timeline import Entry, Timeline
from chaos.reports.run.describe import describe
from chaos.reports.run.page.object_diff import object_diff
from chaos.reports.run.page.observations import News, object_identity, select
from chaos.reports.run.page.page_data import MAX_OBSERVATIONS, PageClock
from chaos.reports.run.page.timeline_lanes import lane_of


class LiveRows:
    """The rows that :func:`chaos.reports.run.page.observations.observations` selects, as JSON by sequence number.

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
