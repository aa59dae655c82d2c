"""Runs for a terminal: the summary of one, and the table of many, which programs get as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from chaos.core.duration import format_duration
from chaos.core.result import RunResult, RunState, StoredRun
from chaos.core.text import printable, shell_word
from chaos.core.verdict import SYMBOLS, Status
from chaos.reports.markup import text
from chaos.reports.run.outline import (
    SIMULATED,
    assumed_facts,
    format_offset,
    format_utc,
    name_of,
    origin,
    pending_undo,
    sections,
    unnoticed_text,
)
from chaos.reports.run.verdicts import Row, leftovers, notes, rows
from chaos.reports.tables import (
    MAX_STEP_SUMMARY,
    Column,
    escape,
    markdown_details,
    markdown_document,
    markdown_table,
    text_table,
)

_ANSI = {
    Status.HELD: "32", Status.VIOLATED: "1;31", Status.INCONCLUSIVE: "33", Status.PENDING: "33", Status.KNOWN: "35",
}  # fmt: skip


def summary(result: RunResult, *, report: str = "", color: bool = False, is_undone: bool = False) -> str:
    """Headline, one line per verdict, and everything left behind; ends in a newline.

    ``report`` is the path of the report, printed if given. The first and the last line mark a simulated cluster.
    ``is_undone``: since the end of the run, as its journal shows.
    """
    start, found = origin(result), rows(result, steps=False)
    width = max((len(row.verdict.shown.words) for part in found.values() for row in part), default=0)
    width = max(width, len(Status.INCONCLUSIVE))
    lab = " (simulated cluster)" if result.simulated and "simulated" not in result.headline else ""
    first = f"{SYMBOLS[result.status]} {printable(result.headline)}{lab}"
    lines = [_colorize(first, result.status, color), f"  {printable(name_of(result))}: {printable(result.title)}"]
    for section in sections(result):
        lines += ["", section.title, *(_verdict_line(row, start, width, color) for row in found[section.key])]
    undo = "undo no longer pending" if is_undone else "undo pending"
    rest = [
        *(f"{undo}: {printable(line)}" for line in pending_undo(result)),
        *(f"left behind: {printable(line)}" for line in leftovers(result)),
        *(printable(unnoticed_text(each)) for each in result.unnoticed),
        *(f"assumed: {printable(line)}" for line in assumed_facts(result)),
        *(f"note: {printable(line)}" for line in notes(result)),
    ]
    if report:
        rest.append(f"report: {printable(report)}")
    if result.simulated:
        rest.append(SIMULATED)
    return "\n".join([*lines, *(["", *rest] if rest else [])]) + "\n"


def _verdict_line(row: Row, start: float, width: int, color: bool) -> str:
    verdict, shown = row.verdict, row.verdict.shown
    status = f"{SYMBOLS[shown]} {shown.words:<{width}}"
    reason = "" if verdict.status is Status.HELD else f": {printable(row.because)}"
    at = format_offset(verdict.at, start)
    return f"  {_colorize(status, shown, color)} {at:>8}  {printable(verdict.name)}{reason}"


def _colorize(words: str, status: Status, color: bool) -> str:
    return f"\x1b[{_ANSI[status]}m{words}\x1b[0m" if color else words


_MAX_NODES = 3
_SYMBOLS = {str(status): symbol for status, symbol in SYMBOLS.items()}


def runs_table(runs: Iterable[StoredRun], version: str) -> list[str]:
    """Lines of the table: one for each run, and one more for what is wrong with it, below it.

    ``version``: of this nodefall; a run of another one is marked.
    """
    listed = list(runs)
    lines = text_table(_RUNS, listed)
    notes = [(), *(run_notes(run, version) for run in listed)]
    return [text for line, more in zip(lines, notes, strict=True) for text in (line, *(f"  {note}" for note in more))]


def run_notes(run: StoredRun, version: str) -> tuple[str, ...]:
    """What a reader of the table must know of a run beside its cells."""
    notes = []
    if run.pending and run.state is not RunState.RUNNING:
        notes.append(f"undo pending: nodefall undo {printable(shell_word(run.directory))}")
    if run.pending is None:
        notes.append("whether an undo is pending is unknown")
    if run.problem:
        notes.append(f"damaged: {printable(run.problem)}")
    if run.state is RunState.NO_RESULT:
        notes.append(f"no result: killed, or still running on another machine; by {printable(run.by) or 'unknown'}")
    if run.nodefall != version and (run.result or not run.problem):
        notes.append(f"by nodefall {printable(run.nodefall)}" if run.nodefall else "by an older version of nodefall")
    return tuple(notes)


def runs_markdown(runs: Sequence[StoredRun], report_of: Callable[[StoredRun], str]) -> str:
    """Markdown for the summary of a CI job: the table of all runs, and the reports of those that did not hold, folded.

    ``report_of``: the text of report.md of a run, "" without one. Fits into a job's summary on GitHub.
    """
    ordered = sorted(runs, key=lambda run: run.verdict == Status.HELD)
    counts = ", ".join(
        f"{number} {verdict}" for verdict, number in sorted(Counter(run.verdict for run in runs).items())
    )
    blocks: list[list[str]] = [[f"**{escape(counts)}**"], markdown_table(_RUNS, ordered)]
    blocks += [
        markdown_details(text(f"{run.run or run.name}: {run.verdict}"), report.splitlines())
        for run in ordered
        if run.verdict != Status.HELD and (report := report_of(run))
    ]
    return markdown_document(blocks, MAX_STEP_SUMMARY)


def run_row(run: StoredRun) -> dict[str, Any]:
    """A run for programs. Times in seconds since the epoch, None if unknown; ``name`` is accepted by commands."""
    return {
        "name": run.name,
        "run": run.run,
        "directory": str(run.directory),
        "experiment": run.experiment,
        "experiment_hash": run.experiment_hash,
        "state": str(run.state),
        "verdict": run.verdict,
        "exit_code": run.result.exit_code if run.result else None,
        "headline": run.result.headline if run.result else "",
        "inventory": run.inventory,
        "cluster_uid": run.cluster_uid,
        "simulated": run.simulated,
        "started": run.started,
        "duration": run.duration,
        "targets": run.targets or {},
        "undo_pending": run.pending,
        "by": run.by,
        "nodefall": run.nodefall,
        "problem": run.problem,
    }


def _nodes(targets: dict[str, tuple[str, ...]] | None) -> str:
    if targets is None:
        return "unknown"
    nodes: Sequence[str] = list(dict.fromkeys(node for nodes in targets.values() for node in nodes))
    more = f" and {len(nodes) - _MAX_NODES} more" if len(nodes) > _MAX_NODES else ""
    return ", ".join(map(printable, nodes[:_MAX_NODES])) + more


_RUNS: tuple[Column[StoredRun], ...] = (
    Column("run", lambda run: printable(run.run or run.name)),
    Column("experiment", lambda run: printable(run.experiment)),
    Column("verdict", lambda run: f"{_SYMBOLS.get(run.verdict, '-')} {run.verdict}"),
    Column("cluster", lambda run: printable(run.cluster)),
    Column("started", lambda run: "unknown" if run.started is None else format_utc(run.started)),
    Column("duration", lambda run: "" if run.duration is None else format_duration(round(run.duration, 1))),
    Column("targets", lambda run: _nodes(run.targets)),
)
