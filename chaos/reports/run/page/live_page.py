"""The data of a page of a run in progress: whole once, then what has changed.

A message is one JSON object; ``live.js`` makes of all of them together what
:func:`chaos.reports.run.page.page_data.page_data` would return. Times and *S* are as there, but texts are in place::

    whole         whether everything from before is to be forgotten
    version       of the page's data
    origin        epoch seconds of time 0
    window, now   [begin, end] of the chart; the end of the timeline, which is that of all that has the end null
    namespace, states, omitted
    lanes         [[after, lane]]: ``after`` is the key of the lane before it, "" for none, null for a lane that stays
                  where it is; a lane is [key, kind, name, short, owner, node, flags, [[start, end, state, text, seq]],
                  [[start, end, text, seq]], [[at, kind, text, seq]]]: its spans, taints and marks
    rows          rows of the table of observations (:mod:`chaos.reports.run.page.live_parts`)
    gone          sequence numbers of rows that are no more in it
    charts        all charts in their order, null if no value or bound has changed; of at and value only what follows
                  the first ``from`` points, which are those of the chart that had the index ``of``, -1 for none
    steps, undo, verdicts, blinds   as in the page's data; missing if they have not changed
"""

from __future__ import annotations

import json
from typing import Any

from chaos.core.result import RunResult
from chaos.core.text import printable
from chaos.core.timeline import Entry, Timeline
from chaos.core.verdict import ValueLimit
from chaos.reports.run.outline import cited_seqs, origin, value_limits
from chaos.reports.run.page.lanes import Lane, affected_lanes, lane_of, own_namespace, short_names, without_namespace
from chaos.reports.run.page.live_parts import LiveLanes, LiveRows
from chaos.reports.run.page.page_data import (
    STATES,
    VERSION,
    PageClock,
    blind_objects,
    chart_objects,
    lane_flags,
    undo_objects,
    verdict_objects,
    window,
)
from chaos.reports.run.steps import step_groups

_LASTS = float("inf")
_CHARTED = frozenset({"nodes", "deployments", "statefulsets", "daemonsets", "endpointslices", "probe", "prometheus"})


class LivePage:
    """The page of one run. It has a separate timeline, as the one of the run belongs to the run's thread."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self._lanes, self._rows = LiveLanes(self.timeline), LiveRows(self.timeline)
        self._clock = PageClock(float("nan"))
        self._sent_lanes: dict[str, tuple[Lane, str, int, str]] = {}  # by key: lane, short name, flags, text
        self._sent_rows: dict[int, str] = {}
        self._sent_parts: dict[str, str] = {}
        self._sent_charts: list[dict[str, Any]] = []
        self._short: list[str] = []
        self._namespace = ""
        self._cited: set[int] = set()
        self._omitted = 0
        self._has_new_counts = False
        self._limits: tuple[ValueLimit, ...] = ()

    def add(self, entry: Entry) -> None:
        """Take the next entry of the run."""
        self.timeline.add(entry)
        self._lanes.note(entry)
        self._rows.note(entry)
        self._has_new_counts = self._has_new_counts or entry.kind in _CHARTED

    def update(self, result: RunResult, now: float) -> str:
        """The message with what has changed since the last one. ``now``: epoch seconds by the run's clock."""
        self.timeline.end = max(self.timeline.end, now)
        clock = PageClock(origin(result))
        is_whole = clock != self._clock
        if is_whole:
            self._restart(clock)
        cited = set(cited_seqs(result))
        parts = {"lanes": self._update_lanes(result, cited, is_whole=is_whole)}
        rows, self._omitted = self._rows.update(cited, clock)
        parts["rows"] = _array(text for seq, text in rows.items() if self._sent_rows.get(seq) != text)
        parts["gone"] = _text([seq for seq in self._sent_rows if seq not in rows])
        self._sent_rows = rows
        parts["charts"] = self._update_charts(result)
        parts |= self._changed_parts(result)
        return self._message(result, parts, is_whole=is_whole)

    def whole(self, result: RunResult) -> str:
        """Everything as of the last :meth:`update`, which had the same result, as a separate message."""
        before, lanes = "", []
        for lane in self._lanes.ordered:
            lanes.append(f"[{_text(before)},{self._sent_lanes[lane.key][3]}]")
            before = lane.key
        charts = [_chart_change([], chart) for chart in self._sent_charts]
        parts = {"lanes": _array(lanes), "rows": _array(self._sent_rows.values()), "gone": "[]"}
        parts |= {"charts": _text(charts), **self._sent_parts}
        return self._message(result, parts, is_whole=True)

    def _restart(self, clock: PageClock) -> None:
        """Times have another origin: everything has to be made again."""
        self._clock = clock
        self._rows.restart()
        for sent in (self._sent_lanes, self._sent_rows, self._sent_parts):
            sent.clear()
        self._sent_charts = []
        self._has_new_counts = True

    def _update_lanes(self, result: RunResult, cited: set[int], *, is_whole: bool) -> str:
        targets = {node for nodes in result.targets.values() for node in nodes}
        has_changed, moved = self._lanes.update(targets)
        lanes, namespace = self._lanes.ordered, self._namespace
        self._namespace = own_namespace(self.timeline.meta, lanes)
        self._has_new_counts = self._has_new_counts or namespace != self._namespace
        if not (has_changed or is_whole or cited != self._cited or namespace != self._namespace):
            return "[]"
        self._cited = cited
        if moved or namespace != self._namespace or len(self._short) != len(lanes):
            self._short = short_names(lanes, self._namespace)
        affected = affected_lanes(lanes, targets, self._cited_lanes(), self._clock.origin)
        found, before = [], ""
        for lane, short, is_affected in zip(lanes, self._short, affected, strict=True):
            flags = lane_flags(lane, targets, is_affected=is_affected)
            sent = self._sent_lanes.get(lane.key)
            if sent is None or lane.key in moved or sent[0] is not lane or sent[1:3] != (short, flags):
                text = self._lane_text(lane, short, flags)
                if sent is None or lane.key in moved or sent[3] != text:
                    after = before if sent is None or lane.key in moved else None
                    found.append(f"[{_text(after)},{text}]")
                self._sent_lanes[lane.key] = lane, short, flags, text
            before = lane.key
        return _array(found)

    def _cited_lanes(self) -> set[str]:
        entries = self.timeline.entries
        return {lane_of(entries[seq], self.timeline) for seq in self._cited if seq < len(entries)} - {""}

    def _lane_text(self, lane: Lane, short: str, flags: int) -> str:
        at, end = self._clock.at, self._clock.or_none
        spans = [[at(s.start), end(s.end), STATES.index(s.state), printable(s.text), s.seq] for s in lane.spans]
        taints = [[at(s.start), end(s.end), printable(s.text), s.seq] for s in lane.taints]
        marks = [[at(m.t), 1 if m.kind == "gone" else 0, printable(m.text), m.seq] for m in lane.marks]
        words = (printable(lane.name), printable(short), printable(lane.owner), lane.group)
        return _text([lane.key, 0 if lane.kind == "node" else 1, *words, flags, spans, taints, marks])

    def _update_charts(self, result: RunResult) -> str:
        limits = value_limits(result)
        if not self._has_new_counts and limits == self._limits:
            return "null"
        self._has_new_counts, self._limits = False, limits
        before = self._sent_charts
        self._sent_charts = chart_objects(self.timeline, self._clock, self._namespace, limits)
        return _text([_chart_change(before, chart) for chart in self._sent_charts])

    def _changed_parts(self, result: RunResult) -> dict[str, str]:
        clock, timeline = self._clock, self.timeline
        result = without_namespace(result, self._namespace)
        made = {
            "steps": _text(step_groups(result, clock.at)),
            "undo": _text(undo_objects(timeline, clock, _LASTS)),
            "verdicts": _text(verdict_objects(result, timeline, clock)),
            "blinds": _text(blind_objects(result, timeline, clock, _LASTS)),
        }
        changed = {name: text for name, text in made.items() if self._sent_parts.get(name) != text}
        self._sent_parts = made
        return changed

    def _message(self, result: RunResult, parts: dict[str, str], *, is_whole: bool) -> str:
        clock = self._clock
        head = {
            "whole": is_whole,
            "version": VERSION,
            "origin": clock.origin,
            "window": [clock.at(t) for t in window(result, self.timeline)],
            "now": clock.at(self.timeline.end),
            "namespace": printable(self._namespace),
            "states": STATES,
            "omitted": self._omitted,
        }
        texts = {name: _text(value) for name, value in head.items()} | parts
        return "{" + ",".join(f'"{name}":{text}' for name, text in texts.items()) + "}"


def _chart_change(before: list[dict[str, Any]], chart: dict[str, Any]) -> dict[str, Any]:
    """The chart without the points that one of ``before`` had, too."""
    for index, old in enumerate(before):
        known = len(old["at"])
        if old["name"] == chart["name"] and all(chart[name][:known] == old[name] for name in ("at", "value")):
            return {**chart, "of": index, "from": known, "at": chart["at"][known:], "value": chart["value"][known:]}
    return {**chart, "of": -1, "from": 0}


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _array(texts: Any) -> str:
    return f"[{','.join(texts)}]"
