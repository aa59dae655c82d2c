"""Records of game days, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from chaos.core.action import ProofStatus
from chaos.core.result import ForeignFault, RunResult, StepResult, UndoResult
from chaos.core.verdict import Status
from chaos.core.verdict import Verdict as Judged
from chaos.gameday.events import EventKind, Undelivered
from chaos.gameday.state import Approval, DayRun, DayState, Halt, PastWait, RunKey, RunStatus, Verdict, Waiting
from chaos.reports.day.view import ClusterRecord, DayView, EntryRecord, make_view

BEGIN = 1_796_115_600.0  # Tue 2026-12-01 09:00 UTC, 10:00 in Berlin
WINDOW = {
    "zone": "Europe/Berlin",
    "open": [{"days": ["Mon", "Tue"], "from": "09:00", "to": "16:00"}],
    "not": [{"on": "12-24", "why": "holidays"}],
}
PLAN = "ab" * 32


def ran(entry: str, verdict: Verdict = "held", repetition: int = 1, at: float = BEGIN, **changes: Any) -> DayRun:
    """A run that began at ``at`` and took two minutes; its ID is ``entry-repetition``."""
    run = DayRun(
        RunKey(entry, "", repetition), 7, "stop", RunStatus.DONE, f"{entry}-{repetition}", True, 1, verdict,
        begun=at, ended=at + 120.0,
    )  # fmt: skip
    return replace(run, **changes)


def skipped(entry: str, reason: str, at: float = BEGIN) -> DayRun:
    return DayRun(RunKey(entry, "", 1), 7, "stop", RunStatus.SKIPPED, reason=reason, ended=at)


def pending(entry: str) -> DayRun:
    return DayRun(RunKey(entry, "", 1), 7, "stop")


def record(*runs: DayRun, cluster: str = "staging", **changes: Any) -> ClusterRecord:
    """A day of these runs, whose directories are here. ``changes``: of the record, or of the state in it."""
    state = DayState("2026-12-01", "monthly", PLAN, 42, BEGIN - 60.0, "by-entry", 1, "me@here", 1, runs)
    in_state = {name: changes.pop(name) for name in list(changes) if name in DayState.__struct_fields__}
    entries = tuple(
        EntryRecord(name, f"x-{name}", f"The {name} works", (f"{name} comes true",), ())
        for name in dict.fromkeys(run.key.entry for run in runs)
    )
    made = ClusterRecord(
        title="Node failures", owner="platform team", cluster=cluster, simulated=False, written=BEGIN + 7200.0,
        entries=entries, state=replace(state, **in_state),
        directories={run.run: f"x-{run.key.entry}/20261201T090000Z" for run in runs if run.run},
    )  # fmt: skip
    return replace(made, **changes)


def result(*verdicts: Judged, **changes: Any) -> RunResult:
    made = RunResult(
        1, "r", "x", "t", Status.HELD, 0, "held", False, "v1.36", "uid", BEGIN, BEGIN + 60.0, {}, (), (), verdicts
    )
    return replace(made, **changes)


def judged(name: str, status: Status, because: str = "it was seen") -> Judged:
    return Judged(name, "pods", status, because, "true within 40s", "false after 40s")


def view(*records: ClusterRecord, results: Mapping[str, RunResult] | None = None) -> DayView:
    return make_view(records, results or {})


def hostile_view(text: str, stamp: str = "stamp") -> DayView:
    """A day on two clusters in which every text of others is ``text``. ``stamp``: of the run with a result."""
    records = [_hostile_record(text, cluster, stamp) for cluster in "ab"]
    return view(*records, results={"drain": _hostile_result(text)})


def _hostile_record(text: str, cluster: str, stamp: str) -> ClusterRecord:
    ends: tuple[tuple[Verdict, str], ...] = (("held", "drain"), ("violated", text), ("interrupted", text + "2"))
    runs = tuple(
        ran("drain", verdict, number, run=run, key=RunKey(text, text, number), reason=text, gates_held=BEGIN)
        for number, (verdict, run) in enumerate(ends, 1)
    )
    runs += (replace(skipped(text, text), key=RunKey(text, text, 9)),)
    made = record(
        *runs,
        cluster=f"{text}{cluster}",
        day=text, gameday=text, plan_hash=text, holder=text,
        halts=(Halt(text, BEGIN, text, text, BEGIN + 1, text),),
        approvals=(Approval(text, BEGIN, text, text, text), Approval(text, BEGIN, PLAN, "", text)),
        waits=(PastWait(text, (text, text), BEGIN, BEGIN + 5), PastWait(text, (text,), BEGIN)),
        waiting=Waiting(text, text, BEGIN, None, (text,)),
        undelivered=(Undelivered(text, EventKind.DAY_ENDS, BEGIN, text),),
        title=text, owner=text, simulated=True, schedule=text, gates=(text,), abort=(text,),
        window=WINDOW | {"not": [{"on": "12-24", "why": _without_surrogates(text)[:200]}]},
        directories={"drain": f"x/{stamp}", text: f"../{stamp}"},
    )  # fmt: skip
    return replace(made, entries=(EntryRecord(text, text, text, (text,), (text,)),))


def _without_surrogates(text: str) -> str:
    """A document cannot have them."""
    return text.encode("utf-8", "replace").decode()


def _hostile_result(text: str) -> RunResult:
    verdicts = tuple(Judged(text, text, status, text, text, text) for status in Status)
    step = StepResult(text, text, text, BEGIN, None, text, text, ProofStatus.UNPROVEN, text)
    return result(
        *verdicts, title=text, headline=text, steps=(step,), undo=(UndoResult(text, text, text, False, text),),
        leftovers=(text,), foreign_faults=(ForeignFault(text, text, text, text, BEGIN, BEGIN),),
    )  # fmt: skip
