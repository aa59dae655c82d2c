"""The data contract between the report and its script, version 2.

The page holds one JSON object, packed by :func:`chaos.reports.run.page.page_data.pack`. Times are whole milliseconds
after the first step (after the start of a run without steps). *S* is an index into ``strings``, *seq* the number of an
entry, *lane* an index into the lanes, -1 for none. A table is an object of equally long columns::

    version       2
    origin        epoch seconds of time 0
    window        [begin, end] of the observed time
    namespace     the namespace that short names leave out
    states        names of the states; spans hold an index into them
    strings       every text of the tables below
    lanes         table: kind (0 node, 1 pod), name S, short S, owner S, node (lane), flags (1 target, 2 changed,
                  4 affected), spans, taints, marks (how many rows of these tables, in the order of the lanes)
    spans         table: start, end, state, text S, seq
    taints        table: start, end, text S, seq
    marks         table: at, kind (0 disruption, 1 deleted), text S, seq
    observations  table: seq, at, kind S, lane, text S, isFirst (1: there is no previous version of an object),
                  changes (how many rows of that table)
    omitted       how many further changes the recording has
    changes       table: path S, before S, after S: the fields that differ from the previous version of the object
    steps         objects: name, action, count, proven, begin, end, items [{node, status, text, command, delivery,
                  evidence [seq]}]: equal steps of one moment are one
    undo          objects: step, node, begin, end
    verdicts      objects, worst first: id, status, symbol, start, deadline, at, evidence [seq], decided (seq or null),
                  and the columns of chaos/reports/run/verdicts.py that the script shows: name, part, because, ...
    blinds        objects: kind, node, start, end, text; first those of kind unnoticed, of machines that were off
    charts        objects: name, unit, step (bool), at [], value [], bounds [[label, value]]

``start``, ``deadline`` and ``at`` of verdicts may be null. A reader must reject a version that it does not know.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.core.recording import ActionPhase
from chaos.core.result import RunResult
from chaos.core.text import printable
from chaos.core.timeline import Timeline
from chaos.core.verdict import SYMBOLS, ValueLimit
from chaos.reports.run.describe import describe
from chaos.reports.run.outline import cited_seqs, origin, unnoticed_text, value_limits
from chaos.reports.run.page.changes import object_diff, observations
from chaos.reports.run.page.charts import charts
from chaos.reports.run.page.lanes import Lane, affected_lanes, lane_of, own_namespace, short_names, without_namespace
from chaos.reports.run.steps import step_groups
from chaos.reports.run.verdicts import VERDICTS, deciding_entry, plain_rows, ranked
from chaos.reports.tables import View, shown


class StringTable:
    """Strings by index, each stored once; all are printable."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._indexes: dict[str, int] = {}
        self._of_raw: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Index of ``text``, after escaping."""
        found = self._of_raw.get(text)
        if found is None:
            shown = printable(text)
            found = self._indexes.setdefault(shown, len(self.strings))
            if found == len(self.strings):
                self.strings.append(shown)
            self._of_raw[text] = found
        return found


class ColumnTable(dict[str, list[Any]]):
    """Rows stored by column, which compresses better than objects and is read faster."""

    def __init__(self, *names: str) -> None:
        super().__init__((name, []) for name in names)

    def append(self, *row: Any) -> None:
        """Add one row, in the order of the names."""
        for column, value in zip(self.values(), row, strict=True):
            column.append(value)

    def __len__(self) -> int:
        return len(next(iter(self.values())))


def pack(value: Any) -> str:
    """JSON, compressed (zlib), in base64: what the script unpacks with DecompressionStream("deflate")."""
    return pack_text(json.dumps(value, separators=(",", ":"), sort_keys=True))


def pack_text(text: str) -> str:
    """The same of JSON that is text already."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def unpack(text: str) -> Any:
    """The value that :func:`pack` was given."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


VERSION = 2
STATES = ("ready", "running", "pending", "notready", "unknown", "terminating", "succeeded", "failed")
UNNOTICED = "unnoticed"
_TARGET, _CHANGED, _AFFECTED = 1, 2, 4
MAX_OBSERVATIONS = 3000


def page_data(result: RunResult, timeline: Timeline, lanes: list[Lane]) -> dict[str, Any]:
    """The data of a page, in the shape that the module describes."""
    begin, end = window(result, timeline)
    clock, strings = PageClock(origin(result)), StringTable()
    namespace = own_namespace(timeline.meta, lanes)
    result = without_namespace(result, namespace)
    return {
        "version": VERSION,
        "origin": clock.origin,
        "window": [clock.at(begin), clock.at(end)],
        "namespace": printable(namespace),
        "states": STATES,
        **_lane_tables(result, timeline, lanes, short_names(lanes, namespace), clock, strings),
        **_observation_tables(result, timeline, lanes, clock, strings),
        "strings": strings.strings,
        "steps": step_groups(result, clock.at),
        "undo": undo_objects(timeline, clock, timeline.end),
        "verdicts": verdict_objects(result, timeline, clock),
        "blinds": blind_objects(result, timeline, clock, end),
        "charts": chart_objects(timeline, clock, namespace, value_limits(result)),
    }


def window(result: RunResult, timeline: Timeline) -> tuple[float, float]:
    """Return begin and end of the chart: of the timeline, or of the run if the timeline is empty. At least 1 s long."""
    begin, end = (timeline.start, timeline.end) if timeline.entries else (result.started, result.ended)
    return begin, max(end, begin + 1)


@dataclass(frozen=True, slots=True)
class PageClock:
    """Epoch seconds as milliseconds after ``origin``; the infinite time of what still lasts has no number."""

    origin: float

    def at(self, t: float) -> int:
        return round((t - self.origin) * 1000)

    def or_none(self, t: float | None) -> int | None:
        return None if t is None or math.isinf(t) else self.at(t)


def _lane_tables(
    result: RunResult,
    timeline: Timeline,
    lanes: list[Lane],
    short: Sequence[str],
    clock: PageClock,
    strings: StringTable,
) -> dict[str, ColumnTable]:
    targets = {node for nodes in result.targets.values() for node in nodes}
    affected = affected_lanes(lanes, targets, cited_lanes(cited_seqs(result), timeline), clock.origin)
    node_index = {lane.key: index for index, lane in enumerate(lanes) if lane.kind == "node"}
    table = ColumnTable("kind", "name", "short", "owner", "node", "flags", "spans", "taints", "marks")
    spans, taints = ColumnTable("start", "end", "state", "text", "seq"), ColumnTable("start", "end", "text", "seq")
    marks = ColumnTable("at", "kind", "text", "seq")
    for lane, name, is_affected in zip(lanes, short, affected, strict=True):
        is_node = lane.kind == "node"
        flags = lane_flags(lane, targets, is_affected=is_affected)
        texts = (strings.add(lane.name), strings.add(name), strings.add(lane.owner))
        counts = (len(lane.spans), len(lane.taints), len(lane.marks))
        table.append(0 if is_node else 1, *texts, node_index.get(lane.group, -1), flags, *counts)
        for s in lane.spans:
            spans.append(clock.at(s.start), clock.at(s.end), STATES.index(s.state), strings.add(s.text), s.seq)
        for s in lane.taints:
            taints.append(clock.at(s.start), clock.at(s.end), strings.add(s.text), s.seq)
        for mark in lane.marks:
            marks.append(clock.at(mark.t), 1 if mark.kind == "gone" else 0, strings.add(mark.text), mark.seq)
    return {"lanes": table, "spans": spans, "taints": taints, "marks": marks}


def lane_flags(lane: Lane, targets: Container[str], *, is_affected: bool) -> int:
    """The flags of a lane, as the table of lanes has them."""
    is_target = lane.kind == "node" and lane.key in targets
    return _TARGET * is_target + _CHANGED * lane.has_changes + _AFFECTED * is_affected


def cited_lanes(cited: Collection[int], timeline: Timeline) -> set[str]:
    """Keys of the lanes whose entries verdicts and proofs cite."""
    return {lane_of(entry, timeline) for entry in timeline.entries.select(cited)} - {""}


def _observation_tables(
    result: RunResult, timeline: Timeline, lanes: list[Lane], clock: PageClock, strings: StringTable
) -> dict[str, Any]:
    """Observed changes, with every cited entry, every action, and the differences to the version before."""
    rows, omitted = observations(timeline, set(cited_seqs(result)), MAX_OBSERVATIONS)
    lane_index = {lane.key: index for index, lane in enumerate(lanes)}
    table = ColumnTable("seq", "at", "kind", "lane", "text", "isFirst", "changes")
    changes = ColumnTable("path", "before", "after")
    for entry, before in rows:
        found = [] if before is None else object_diff(before, entry.object)
        lane = lane_index.get(lane_of(entry, timeline), -1)
        texts = (strings.add(entry.kind), lane, strings.add(describe(entry)))
        table.append(entry.seq, clock.at(entry.t), *texts, int(before is None), len(found))
        for change in found:
            changes.append(*map(strings.add, change))
    return {"observations": table, "changes": changes, "omitted": omitted}


def undo_objects(timeline: Timeline, clock: PageClock, until: float) -> list[dict[str, Any]]:
    """Undos from their begin to their proof; one without proof lasts ``until``."""
    ended = {(e.node, r.step): e.t for e, r in timeline.actions if r.phase == ActionPhase.UNDONE}
    return [
        {
            "step": printable(record.step),
            "node": printable(entry.node),
            "begin": clock.at(entry.t),
            "end": clock.or_none(ended.get((entry.node, record.step), until)),
        }
        for entry, record in timeline.actions
        if record.phase == ActionPhase.UNDO
    ]


def verdict_objects(result: RunResult, timeline: Timeline, clock: PageClock) -> list[dict[str, Any]]:
    """All verdicts, worst first, with the columns that the script shows."""
    times = {entry.seq: entry.t for entry in timeline.entries.select(cited_seqs(result))}
    columns = shown(VERDICTS, View.SCRIPT)
    return [
        {column.key: printable(column.cell(row)) for column in columns}
        | {
            "id": row.key,
            "status": str(row.verdict.shown),
            "symbol": SYMBOLS[row.verdict.shown],
            "start": clock.or_none(row.verdict.start),
            "deadline": clock.or_none(row.verdict.deadline),
            "at": clock.or_none(row.verdict.at),
            "evidence": list(row.verdict.evidence),
            "decided": deciding_entry(row.verdict, times),
        }
        for row in ranked(plain_rows(result))
    ]


def blind_objects(result: RunResult, timeline: Timeline, clock: PageClock, end: float) -> list[dict[str, Any]]:
    """Unnoticed times, blind windows, and times whose changes came late, so that their order is uncertain.

    ``kind`` nodes or pods hatches those lanes, recording all lanes, ``node`` one lane. ``end``: of what still lasts.
    """
    found = [
        {"kind": UNNOTICED, "node": printable(each.node), "start": clock.at(each.since), "end": clock.at(each.until)}
        | {"text": printable(unnoticed_text(each))}
        for each in result.unnoticed
    ]
    late = [window for source in ("nodes", "pods") for window in timeline.currency.late_windows(source)]
    windows = [(blind, "{} could not be observed: {}") for blind in timeline.blind_windows]
    for blind, words in (*windows, *((blind, "the order of changes of {} is uncertain: {}") for blind in late)):
        kind, _, node = blind.source.partition("@")
        until = end if blind.end is None else blind.end
        text = printable(words.format(blind.source, blind.reason))
        times = {"start": clock.at(blind.start), "end": clock.or_none(until)}
        found.append({"kind": printable(kind), "node": printable(node), **times, "text": text})
    return found


def chart_objects(
    timeline: Timeline, clock: PageClock, namespace: str, limits: Sequence[ValueLimit]
) -> list[dict[str, Any]]:
    """All charts, the name of ``namespace`` left out of theirs."""
    return [
        {
            "name": printable(chart.name.removeprefix(f"{namespace}/")),
            "unit": chart.unit,
            "step": chart.is_step,
            "at": [clock.at(t) for t, _ in chart.points],
            "value": [value for _, value in chart.points],
            "bounds": [[printable(label), value] for label, value in chart.bounds],
        }
        for chart in charts(timeline, clock.origin, limits)
    ]
