"""The tables of the live view, and which of their columns fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from chaos.cli.run.lines import Line, ProgressState
from chaos.cli.run.view.state import DELETED, ClusterState, NodeRow, WorkloadRow
from chaos.core.text import escape_for_encoding, printable
from chaos.core.verdict import SYMBOLS, Status, Verdict
from chaos.reports.history.trend import sparkline

GAP = 2  # cells between two columns
T = TypeVar("T")
STYLES = {
    Status.HELD: "green", Status.VIOLATED: "bold red", Status.INCONCLUSIVE: "yellow", Status.PENDING: "dim",
    Status.KNOWN: "magenta",
}  # fmt: skip
LINE_STYLES = {"phase": "bold", "step": "cyan", **{str(status): style for status, style in STYLES.items()}}
_ORDER = (Status.VIOLATED, Status.INCONCLUSIVE, Status.PENDING, Status.KNOWN, Status.HELD)
_SPARKS = 20  # cells of a sparkline
_HISTORY_SECONDS = 120.0  # before now that a sparkline shows at least


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``rank``: those with the greatest are dropped first, 0 never. ``least``: cells to which it can shrink.

    ``takes_rest``: it shrinks to ``least`` before a column is dropped, and is as wide as there is room.
    """

    title: str
    rank: int = 0
    least: int = 0
    takes_rest: bool = False
    is_right: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """Text with a style of rich."""

    text: str
    style: str = ""


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> list[Text]:
    """The head and the rows, as lines of at most ``width`` cells."""
    widest = [
        max(cell_len(column.title), *(cell_len(row[index].text) for row in rows)) if rows else cell_len(column.title)
        for index, column in enumerate(columns)
    ]
    shown = _shown(columns, widest, width)
    widths = _widths(columns, widest, shown, width)
    head = [Cell(column.title, "dim") for column in columns]
    return [_line([(row[i], widths[i], columns[i]) for i in shown]) for row in (head, *rows)]


def shorten(text: str, width: int) -> str:
    """``text`` in at most ``width`` cells, with an ellipsis if something is left out."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def _needed(column: Column, widest: int) -> int:
    return min(widest, column.least) if column.takes_rest else widest


def _shown(columns: Sequence[Column], widest: Sequence[int], width: int) -> list[int]:
    """The places of the columns that fit."""
    shown = list(range(len(columns)))
    while True:
        needed = sum(_needed(columns[i], widest[i]) for i in shown) + GAP * (len(shown) - 1)
        least_important = max(shown, key=lambda i: columns[i].rank)
        if needed <= width or columns[least_important].rank == 0:
            return shown
        shown.remove(least_important)


def _widths(columns: Sequence[Column], widest: Sequence[int], shown: Sequence[int], width: int) -> dict[int, int]:
    """The width of each shown column; what is left over goes to those that take the rest, the first ones first."""
    widths = {i: _needed(columns[i], widest[i]) for i in shown}
    rest = width - sum(widths.values()) - GAP * (len(shown) - 1)
    growing = [i for i in shown if columns[i].takes_rest]
    for place, i in enumerate(growing):
        wanted_by_others = sum(widest[j] - widths[j] for j in growing[place + 1 :])
        share = max(rest // 2, rest - wanted_by_others)
        grown = max(0, min(widest[i] - widths[i], share))
        widths[i] += grown
        rest -= grown
    for i in sorted(shown, key=lambda i: -widths[i]):  # too narrow for what is never dropped
        cut = min(widths[i] - 1, -rest) if rest < 0 else 0
        widths[i] -= max(0, cut)
        rest += max(0, cut)
    return widths


def _line(cells: Sequence[tuple[Cell, int, Column]]) -> Text:
    line = Text(no_wrap=True)
    for place, (cell, width, column) in enumerate(cells):
        text = shorten(cell.text, width)
        padding = " " * (width - cell_len(text))
        is_last = place == len(cells) - 1
        padded = padding + text if column.is_right else text if is_last else text + padding
        line.append(padded, cell.style or None)
        if not is_last:
            line.append(" " * GAP)
    return line


_EXPECTATION_COLUMNS = (
    Column("STATE"),
    Column("DUE", is_right=True),
    Column("EXPECTATION", least=22, takes_rest=True),
    Column("OBSERVED", rank=1, least=20, takes_rest=True),
)
_NODE_COLUMNS = (
    Column("NODE (* target)", least=20, takes_rest=True),
    Column("READY"),
    Column("SINCE", rank=3, is_right=True),
    Column("POWER", rank=1),
    Column("KUBELET LOCK", rank=4),
    Column("PODS", rank=5, is_right=True),
    Column("TAINTS", rank=2, least=12, takes_rest=True),
)
_WORKLOAD_COLUMNS = (
    Column("WORKLOAD", least=18, takes_rest=True),
    Column("READY", is_right=True),
    Column("NAMESPACE", rank=2, least=9, takes_rest=True),
    Column("READY OVER TIME", rank=1),
)


def expectation_lines(progress: ProgressState, width: int, height: int, encoding: str) -> list[Text]:
    """Each expectation with its state, the time until it is decided, and what is observed; undecided ones first."""
    verdicts = sorted(progress.verdicts(), key=lambda verdict: _ORDER.index(verdict.shown))
    held = sum(verdict.status is Status.HELD for verdict in verdicts)
    rows = _Rows(verdicts, lambda verdict: _expectation(progress, verdict), f"{held} held in all")
    return _fitting(_EXPECTATION_COLUMNS, rows, width, height, encoding)


def node_lines(state: ClusterState, progress: ProgressState, width: int, height: int, encoding: str) -> list[Text]:
    """The targets, and the nodes that have changed."""
    rows = _Rows(state.nodes.affected(), lambda row: _node(row, progress))
    return _fitting(_NODE_COLUMNS, rows, width, height, encoding)


def workload_lines(state: ClusterState, progress: ProgressState, width: int, height: int, encoding: str) -> list[Text]:
    """The run's own workloads, and those that have changed."""
    rows = _Rows(state.workloads.affected(), lambda row: _workload(row, progress, encoding))
    return _fitting(_WORKLOAD_COLUMNS, rows, width, height, encoding)


def event_lines(events: Sequence[Line], width: int, encoding: str) -> list[Text]:
    """Lines of progress under their head."""
    lines = [Text("LAST EVENTS", "dim", no_wrap=True)]
    for event in events:
        text = shorten(escape_for_encoding(f"{event.offset:>8}  {event.text}", encoding), width)
        lines.append(Text(text, LINE_STYLES.get(event.style, ""), no_wrap=True))
    return lines


@dataclass(frozen=True, slots=True)
class _Rows(Generic[T]):
    """The rows of a table. ``cells`` makes those of one that is shown; ``left_out`` is said if some are not."""

    items: Sequence[T]
    cells: Callable[[T], list[Cell]]
    left_out: str = ""


def _fitting(columns: Sequence[Column], rows: _Rows[T], width: int, height: int, encoding: str) -> list[Text]:
    """A table of at most ``height`` lines, whose last says how many rows are left out; nothing without rows."""
    if not rows.items or height < 2:
        return []
    fits = len(rows.items) + 1 <= height
    shown = [rows.cells(item) for item in (rows.items if fits else rows.items[: height - 2])]
    encoded = [[Cell(escape_for_encoding(cell.text, encoding), cell.style) for cell in row] for row in shown]
    lines = table(columns, encoded, width)
    if not fits:
        more = f"and {len(rows.items) - len(shown)} more" + (f"; {rows.left_out}" if rows.left_out else "")
        lines.append(Text(shorten(more, width), "dim", no_wrap=True))
    return lines


def _expectation(progress: ProgressState, verdict: Verdict) -> list[Cell]:
    shown = verdict.shown
    return [
        Cell(f"{SYMBOLS[shown]} {shown.words}", STYLES[shown]),
        Cell(progress.remaining(verdict)),
        Cell(printable(verdict.name)),
        Cell(printable(verdict.observed or verdict.because), "dim"),
    ]


def _node(row: NodeRow, progress: ProgressState) -> list[Cell]:
    words = {"True": "Ready", "False": "NotReady", "": "not seen", DELETED: DELETED}
    style = {"True": "green", "False": "bold red", "Unknown": "bold red", DELETED: "bold red"}.get(row.ready, "")
    lock = {True: "held", False: "not held", None: ""}[row.holds_lock]
    taints = [*(["cordoned"] if row.is_cordoned else []), *row.taints]
    return [
        Cell(("* " if row.is_target else "  ") + printable(row.name), "bold" if row.is_target else ""),
        Cell(words.get(row.ready, f"NotReady ({row.ready})"), style),
        Cell(progress.offset(row.since)),
        Cell(row.power, "bold red" if row.power == "off" else ""),
        Cell(lock),
        Cell(str(row.pods)),
        Cell(printable(", ".join(taints)), "yellow"),
    ]


def _workload(row: WorkloadRow, progress: ProgressState, encoding: str) -> list[Cell]:
    now = progress.now or 0.0
    start = min(now - _HISTORY_SECONDS, now if progress.first_step is None else progress.first_step)
    values = row.samples(start, now, _SPARKS)
    sparks = sparkline([v for v in values if v is not None], encoding, (0.0, float(max(row.desired, 1))))
    return [
        Cell(printable(f"{row.kind}/{row.name}")),
        Cell(f"{row.ready}/{row.desired}", "green" if row.ready >= row.desired else "bold red"),
        Cell("" if row.is_own else printable(row.namespace), "dim"),
        Cell(" " * (_SPARKS - len(sparks)) + sparks),
    ]
