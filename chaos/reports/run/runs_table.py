"""The table of runs, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chaos.core.duration import format_duration
from chaos.core.stored_run import RunState, StoredRun
from chaos.core.text import align_columns, printable
from chaos.core.verdict import SYMBOLS
from chaos.reports.run.outline import format_utc

HEAD = ("RUN", "EXPERIMENT", "VERDICT", "CLUSTER", "STARTED", "DURATION", "TARGETS")
_MAX_NODES = 3
_SYMBOLS = {str(status): symbol for status, symbol in SYMBOLS.items()}


def runs_table(runs: Iterable[StoredRun], version: str) -> list[str]:
    """Lines of the table: one for each run, and one more for what is wrong with it, below it.

    ``version``: of this nodefall; a run of another one is marked.
    """
    listed = list(runs)
    lines = align_columns([HEAD, *(_row(run) for run in listed)])
    notes = [(), *(run_notes(run, version) for run in listed)]
    return [text for line, more in zip(lines, notes, strict=True) for text in (line, *(f"  {note}" for note in more))]


def run_notes(run: StoredRun, version: str) -> tuple[str, ...]:
    """What a reader of the table must know of a run beside its cells."""
    notes = []
    if run.pending and run.state is not RunState.RUNNING:
        notes.append(f"undo pending: nodefall undo {printable(str(run.directory))}")
    if run.pending is None:
        notes.append("whether an undo is pending is unknown")
    if run.problem:
        notes.append(f"damaged: {printable(run.problem)}")
    if run.state is RunState.NO_RESULT:
        notes.append(f"no result: killed, or going on on another machine; by {printable(run.by) or 'unknown'}")
    if run.nodefall != version and (run.result or not run.problem):
        notes.append(f"by nodefall {printable(run.nodefall)}" if run.nodefall else "by an older version of nodefall")
    return tuple(notes)


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


def _row(run: StoredRun) -> tuple[str, ...]:
    return (
        printable(run.run or run.name),
        printable(run.experiment),
        f"{_SYMBOLS.get(run.verdict, '-')} {run.verdict}",
        printable(run.cluster),
        "unknown" if run.started is None else format_utc(run.started),
        "" if run.duration is None else format_duration(round(run.duration, 1)),
        _nodes(run.targets),
    )


def _nodes(targets: dict[str, tuple[str, ...]] | None) -> str:
    if targets is None:
        return "unknown"
    nodes: Sequence[str] = list(dict.fromkeys(node for nodes in targets.values() for node in nodes))
    more = f" and {len(nodes) - _MAX_NODES} more" if len(nodes) > _MAX_NODES else ""
    return ", ".join(map(printable, nodes[:_MAX_NODES])) + more
