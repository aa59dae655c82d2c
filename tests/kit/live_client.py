"""What a live page shows after its messages, and what a report shows, in one form that can be compared."""

from __future__ import annotations

import json
from itertools import accumulate, pairwise
from typing import Any

_SAME = ("origin", "window", "namespace", "states", "omitted", "steps", "undo", "verdicts", "blinds")


class LiveClient:
    """Reads messages as ``chaos/reports/run/assets/live_data.js`` does."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.lanes: dict[str, list[Any]] = {}
        self.rows: dict[int, list[Any]] = {}
        self.charts: list[dict[str, Any]] = []
        self.parts: dict[str, Any] = {}

    def take(self, message: str) -> None:
        found = json.loads(message)
        if found["whole"]:
            self.__init__()  # type: ignore[misc]
        followers = {after: lane[0] for after, lane in found["lanes"] if after is not None}
        self.lanes |= {lane[0]: lane for _, lane in found["lanes"]}
        moved = set(followers.values())
        order: list[str] = []
        for key in ["", *(key for key in self.order if key not in moved)]:
            last: str | None = key
            while last is not None:
                order.append(last)
                last = followers.get(last)
        self.order = order[1:]
        self.rows |= {row[0]: row for row in found["rows"]}
        for seq in found["gone"]:
            del self.rows[seq]
        if found["charts"] is not None:
            self.charts = [self._chart(chart) for chart in found["charts"]]
        self.parts |= {name: value for name, value in found.items() if name in (*_SAME, "now", "version")}

    def _chart(self, chart: dict[str, Any]) -> dict[str, Any]:
        first, of = chart.pop("from"), chart.pop("of")
        for name in ("at", "value"):
            chart[name] = (self.charts[of][name][:first] if of >= 0 else []) + chart[name]
        return chart

    def shown(self) -> dict[str, Any]:
        now, window = self.parts["now"], self.parts["window"]

        def ended(value: Any, end: float) -> Any:
            return end if value is None else value

        lanes = [self.lanes[key] for key in self.order]
        nodes = {lane[0]: index for index, lane in enumerate(lanes) if lane[1] == 0}
        places = {key: index for index, key in enumerate(self.order)}
        shown = {name: self.parts[name] for name in _SAME}
        shown["undo"] = [{**undo, "end": ended(undo["end"], now)} for undo in shown["undo"]]
        shown["blinds"] = [{**blind, "end": ended(blind["end"], window[1])} for blind in shown["blinds"]]
        shown["lanes"] = [
            [
                *(kind, name, short, owner, nodes.get(node, -1), flags),
                [[start, ended(end, now), *rest] for start, end, *rest in spans],
                [[start, ended(end, now), *rest] for start, end, *rest in taints],
                marks,
            ]
            for _, kind, name, short, owner, node, flags, spans, taints, marks in lanes
        ]
        shown["rows"] = [
            [seq, at, kind, places.get(lane, -1), *rest]
            for seq, at, kind, lane, *rest in (self.rows[seq] for seq in sorted(self.rows))
        ]
        return shown | {"charts": self.charts}


def report_shown(data: dict[str, Any]) -> dict[str, Any]:
    """The same of a report's data."""
    data = json.loads(json.dumps(data))
    strings = data["strings"]

    def parts(name: str, counts: list[int], texts: tuple[str, ...]) -> list[list[Any]]:
        table = data[name]
        columns = [[strings[i] for i in table[key]] if key in texts else table[key] for key in table]
        rows = [list(row) for row in zip(*columns, strict=True)]
        return [rows[first:end] for first, end in pairwise(accumulate(counts, initial=0))]

    lanes, seen = data["lanes"], data["observations"]
    bars = [parts(name, lanes[name], ("text",)) for name in ("spans", "taints", "marks")]
    heads = zip(lanes["kind"], *([strings[i] for i in lanes[key]] for key in ("name", "short", "owner")), strict=True)
    shown = {name: data[name] for name in (*_SAME, "charts")}
    shown["lanes"] = [
        [*head, node, flags, *(table[i] for table in bars)]
        for i, (head, node, flags) in enumerate(zip(heads, lanes["node"], lanes["flags"], strict=True))
    ]
    changes = parts("changes", seen["changes"], ("path", "before", "after"))
    rows = zip(seen["seq"], seen["at"], seen["kind"], seen["lane"], seen["text"], seen["isFirst"], changes, strict=True)
    shown["rows"] = [
        [seq, at, strings[kind], lane, strings[text], first, diff] for seq, at, kind, lane, text, first, diff in rows
    ]
    return shown
