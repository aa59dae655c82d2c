"""A day over all its clusters, as every format shows it, and the record that is kept of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from chaos.core.duration import format_duration
from chaos.core.errors import Exit
from chaos.core.result import RunResult
from chaos.core.text import on_node
from chaos.gameday.calendar import Calendar
from chaos.gameday.state import DayRun, DayState, DayStatus, RunStatus, exit_code, verdict_of
from chaos.gameday.time_rules import Window

RECORD_VERSION = 1
_DIRECTORY = re.compile(r"(?!\.{1,2}/)[^/\\]{1,255}/(?!\.{1,2}$)[^/\\]{1,255}")  # EXPERIMENT/STAMP


class EntryRecord(Struct, frozen=True):
    """An entry as planned. ``expectations``: names of its hypotheses. ``gates``: only its own."""

    name: str
    experiment: str
    title: str
    expectations: tuple[str, ...]
    gates: tuple[str, ...] = ()


class ClusterRecord(Struct, frozen=True):
    """A day on one cluster. ``window``: as in the document, None for one that is always open.

    ``written``: when, in seconds since the epoch. ``gates`` and ``abort``: those of the day. ``directories``: of the
    runs by their ID, as EXPERIMENT/STAMP; a run without one was run from another machine.
    """

    title: str
    owner: str
    cluster: str
    simulated: bool
    written: float
    entries: tuple[EntryRecord, ...]
    state: DayState
    window: dict[str, Any] | None = None
    schedule: str = ""
    gates: tuple[str, ...] = ()
    abort: tuple[str, ...] = ()
    directories: dict[str, str] = {}
    version: int = RECORD_VERSION


def is_run_directory(name: str) -> bool:
    """Whether ``name`` is EXPERIMENT/STAMP, so that it leads nowhere else."""
    return bool(_DIRECTORY.fullmatch(name))


SYMBOLS = {"held": "✓", "violated": "✗", "inconclusive": "?", "interrupted": "?", "running": "…"}
_WORDS = ("violated", "held", "inconclusive", "interrupted", "skipped", "running", "pending")
_CENTURY = 100 * 366 * 86400.0
_SEVERITY = (Exit.HELD, Exit.REFUSED, Exit.INCONCLUSIVE, Exit.VIOLATED)


@dataclass(frozen=True, slots=True)
class RunView:
    """A run of the day. ``result``: None if its directory is not here, or it ended without a result.

    ``link``: of its report, relative to the directory of the day; "" without one.
    """

    cluster: str
    run: DayRun
    entry: EntryRecord
    result: RunResult | None
    link: str

    @property
    def row(self) -> tuple[str, int]:
        """Entry and repetition."""
        return self.run.key.entry, self.run.key.repetition

    @property
    def word(self) -> str:
        """Verdict, or the status of a run without one."""
        return self.run.verdict or str(self.run.status)

    @property
    def seconds(self) -> float | None:
        """How long it took, None if it has not ended, or never began."""
        return seconds_between(self.run.begun, self.run.ended)

    @property
    def took(self) -> str:
        """The same in words, "" for None."""
        return "" if self.seconds is None else format_duration(round(self.seconds))


@dataclass(frozen=True)
class DayView:
    """``records``: one for each cluster. ``runs``: in the order of each cluster."""

    records: tuple[ClusterRecord, ...]
    runs: tuple[RunView, ...]

    @property
    def latest(self) -> ClusterRecord:
        """The record that was written last."""
        return max(self.records, key=lambda record: record.written)

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(record.cluster for record in self.records)

    @property
    def simulated(self) -> tuple[str, ...]:
        """The clusters that were simulated."""
        return tuple(record.cluster for record in self.records if record.simulated)

    @property
    def unfinished(self) -> tuple[ClusterRecord, ...]:
        """The clusters on which the day is not over."""
        return tuple(record for record in self.records if record.state.status is not DayStatus.FINISHED)

    @cached_property
    def calendar(self) -> Calendar:
        """The window of the day, in its zone."""
        window = self.latest.window
        return Calendar(None if window is None else Window.model_validate(window))

    @property
    def exit_code(self) -> Exit:
        """The worst one of all clusters."""
        return max((exit_code(record.state) for record in self.records), key=_SEVERITY.index)

    @property
    def status(self) -> str:
        """held, violated or inconclusive."""
        return verdict_of(self.exit_code)

    @property
    def headline(self) -> str:
        """The status, how many runs ended how, and whether the day is over."""
        counts = Counter(run.word for run in self.runs)
        parts = ", ".join(f"{counts[word]} {word}" for word in _WORDS if counts[word])
        violated = ", ".join(self.label(run) for run in self.runs if run.word == "violated")
        open_days = ", ".join(on_node(str(r.state.status), self._where(r.cluster)) for r in self.unfinished)
        runs = f"{parts} of {len(self.runs)} runs" if len(self.runs) > 1 else parts
        return "; ".join(part for part in (runs, violated, open_days and f"the day is {open_days}") if part)

    @property
    def rows(self) -> tuple[tuple[str, int], ...]:
        """Entries and repetitions, in the order of the document."""
        return tuple(dict.fromkeys(run.row for run in self.runs))

    def at(self, row: tuple[str, int], cluster: str) -> RunView | None:
        """The run of an entry and repetition on a cluster, None if it is not for that cluster."""
        return next((run for run in self.runs if run.row == row and run.cluster == cluster), None)

    def label(self, run: RunView) -> str:
        """Its entry, with repetition and cluster where there are several."""
        return on_node(self.label_of_row(run.row), self._where(run.cluster))

    def label_of_row(self, row: tuple[str, int]) -> str:
        """The entry, with the repetition if it has several."""
        repeated = sum(entry == row[0] for entry, _ in self.rows) > 1
        return f"{row[0]} ({row[1]})" if repeated else row[0]

    def _where(self, cluster: str) -> str:
        return cluster if len(self.records) > 1 else ""

    def when(self, t: float | None) -> str:
        """A time in the zone of the window; "" for None, "unknown" outside of the calendar."""
        if t is None:
            return ""
        moment = moment_of(t)
        return moment.astimezone(self.calendar.zone).strftime("%a %Y-%m-%d %H:%M:%S %Z") if moment else "unknown"


def moment_of(t: float) -> datetime | None:
    """The moment of ``t`` seconds since the epoch, None outside of the years 1971 to 9000."""
    return datetime.fromtimestamp(t, UTC) if 366 * 86400 <= t < 221_845_392_000 else None


def seconds_between(begin: float | None, end: float | None) -> float | None:
    """From 0 to a hundred years, as clocks may have been wrong; None if either is unknown."""
    return None if begin is None or end is None else min(max(0.0, end - begin), _CENTURY)


def make_view(records: Sequence[ClusterRecord], results: Mapping[str, RunResult]) -> DayView:
    """The day of these records, at least one. ``results``: by run ID. Raises ValueError for an invalid window."""
    ordered = tuple(sorted(records, key=lambda record: (record.state.created, record.cluster)))
    view = DayView(ordered, tuple(run for record in ordered for run in _runs(record, results)))
    _ = view.calendar
    return view


def _runs(record: ClusterRecord, results: Mapping[str, RunResult]) -> Iterable[RunView]:
    entries = {entry.name: entry for entry in record.entries}
    for run in record.state.runs:
        name = run.key.entry
        entry = entries.get(name) or EntryRecord(name, name, "", ())
        directory = record.directories.get(run.run, "")
        has_report = is_run_directory(directory) and run.status is RunStatus.DONE
        link = f"../../../{quote(directory, errors='replace')}/report.html" if has_report else ""
        yield RunView(record.cluster, run, entry, results.get(run.run), link)
