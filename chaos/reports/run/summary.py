"""Summary of a run, for a terminal."""

from __future__ import annotations

from chaos.core.result import RunResult
from chaos.core.text import printable
from chaos.core.verdict import SYMBOLS, Status
from chaos.reports.run.outline import (
    SIMULATED,
    assumed_facts,
    format_offset,
    name_of,
    origin,
    pending_undo,
    sections,
)
from chaos.reports.run.verdict_rows import Row, leftovers, notes, rows

_ANSI = {Status.HELD: "32", Status.VIOLATED: "1;31", Status.INCONCLUSIVE: "33", Status.PENDING: "33"}
_STATUS_WIDTH = len(f"? {Status.INCONCLUSIVE}")


def summary(result: RunResult, *, report: str = "", color: bool = False) -> str:
    """Headline, one line per verdict, and everything left behind; ends in a newline.

    ``report`` is the path of the report, printed if given. The first and the last line mark a simulated cluster.
    """
    start, found = origin(result), rows(result, steps=False)
    lab = " (simulated cluster)" if result.simulated and "simulated" not in result.headline else ""
    first = f"{SYMBOLS[result.status]} {printable(result.headline)}{lab}"
    lines = [_colorize(first, result.status, color), f"  {printable(name_of(result))}: {printable(result.title)}"]
    for section in sections(result):
        lines += ["", section.title, *(_verdict_line(row, start, color) for row in found[section.key])]
    rest = [
        *(f"undo pending: {printable(line)}" for line in pending_undo(result)),
        *(f"left behind: {printable(line)}" for line in leftovers(result)),
        *(f"assumed: {printable(line)}" for line in assumed_facts(result)),
        *(f"note: {printable(line)}" for line in notes(result)),
    ]
    if report:
        rest.append(f"report: {printable(report)}")
    if result.simulated:
        rest.append(SIMULATED)
    return "\n".join([*lines, *(["", *rest] if rest else [])]) + "\n"


def _verdict_line(row: Row, start: float, color: bool) -> str:
    verdict = row.verdict
    status = f"{SYMBOLS[verdict.status]} {verdict.status}".ljust(_STATUS_WIDTH)
    reason = "" if verdict.status is Status.HELD else f": {printable(row.because)}"
    at = format_offset(verdict.at, start)
    return f"  {_colorize(status, verdict.status, color)} {at:>8}  {printable(verdict.name)}{reason}"


def _colorize(text: str, status: Status, color: bool) -> str:
    return f"\x1b[{_ANSI[status]}m{text}\x1b[0m" if color else text
