"""Runs that a former process has left behind: their undo is finished, and their end is stored."""

from __future__ import annotations

from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from chaos.app.day.abort_watch import violated_in_run
from chaos.app.day.session import BY_ABORT_CONDITION, DaySession
from chaos.app.undo.finish import UndoRequest, finish_undo
from chaos.app.undo.pending import guard_pending_undo
from chaos.app.undo.sources import import_run, load_info
from chaos.app.wiring.logs import run_log
from chaos.cluster.journal_mirror import find_replica
from chaos.core.errors import Exit, NodefallError, UndoPending, UsageError
from chaos.core.result import RunResult
from chaos.core.store import run_directory
from chaos.core.store.journal import read_entries
from chaos.core.verdict import Status
from chaos.engine.connection import lock_namespace
from chaos.engine.undo import REMOVED_LAST
from chaos.gameday.state import DayRun, DayState, RunStatus, Verdict
from chaos.gameday.transitions import halt, recover

_VERDICTS: dict[int, Verdict] = {Exit.HELD: "held", Exit.VIOLATED: "violated", Exit.INCONCLUSIVE: "inconclusive"}
_WITH_PENDING_UNDO: dict[Status, Verdict] = {Status.HELD: "held", Status.VIOLATED: "violated"}


def recover_runs(session: DaySession) -> None:
    """Finish the undo of every run that is running by the state, and store how it ended.

    Raises UndoPending if an undo could not be finished, Refused if it must be confirmed and is not.
    """
    for run in session.state.runs:
        if run.status is RunStatus.RUNNING:
            _recover(session, run)


def _recover(session: DaySession, run: DayRun) -> None:
    session.note(f"{run.key} was interrupted (run {run.run}): its undo comes first")
    directory = _find_directory(session, run.run)
    if directory:
        _undo(session, run, directory)
    result = _stored_result(directory) if directory else None
    verdict = _verdict_of(result) if result else None
    violated = violated_in_run(session.request.day.document.spec.abort, result) if result else ""
    is_clean = directory is not None and _is_without_fault(directory, result)

    def change(state: DayState) -> DayState:
        if violated and run in state.runs:  # else the answer to this change was lost
            state = halt(state, BY_ABORT_CONDITION, violated, session.now())
        return recover(state, run.key, verdict, session.epoch, session.now(), without_fault=is_clean)

    session.update(change)
    recovered = session.find(run.key)
    session.note(f"{run.key} is {recovered.verdict or 'to begin again: its fault was not injected'}")


def _find_directory(session: DaySession, run: str) -> Path | None:
    """The run's directory, made from the cluster's copy of its journal if it is not here; None without both.

    No operation precedes that copy: without it nothing is to be undone.
    """
    connection, reports = session.connection, session.request.reports
    with suppress(UsageError):
        return run_directory.find(reports, run)
    if find_replica(connection.kube, lock_namespace(connection), run) is None:
        return None
    return import_run(run, connection.inventory, reports)


def _undo(session: DaySession, run: DayRun, directory: Path) -> None:
    run_directory.refuse_untrusted(directory)
    with run_log() as log, guard_pending_undo(directory), closing(session.request.display.open_progress()) as progress:
        info = load_info(directory, has_inventory=True)
        undone = finish_undo(
            UndoRequest(
                directory,
                info,
                session.connection.inventory,
                session.request.confirm_undo,
                partial(log.open, directory),
            ),
            progress,
        )
    if undone.pending or undone.rejected:
        steps = [each.step for each in undone.pending] + [f"{r.entry.step} ({r.why})" for r in undone.rejected]
        raise UndoPending(f"{run.key} has a pending undo: {', '.join(steps)}", hint=f"run nodefall undo {directory}")


def _stored_result(directory: Path) -> RunResult | None:
    """The result of a run that ended, but whose end was not stored in the day's state."""
    if not (directory / run_directory.RESULT).exists():
        return None
    try:
        return run_directory.load_result(directory)
    except UsageError:
        return None  # it was written only in part


def _verdict_of(result: RunResult) -> Verdict:
    if result.exit_code == Exit.UNDO_PENDING:  # it precedes the verdict, but does not replace it
        return _WITH_PENDING_UNDO.get(result.status, "interrupted")
    return _VERDICTS.get(result.exit_code, "interrupted")


def _is_without_fault(directory: Path, result: RunResult | None) -> bool:
    """Whether the run's own journal proves that no step has begun, as each is on disk there before it begins."""
    if not (directory / run_directory.PLAN).is_file():
        return False  # a copy, of which the cluster may have had more
    if result and any(step.begin is not None for step in result.steps):
        return False  # the journal was lost
    try:
        pending, undone = read_entries(directory)
    except NodefallError:
        return False  # a journal that cannot be read proves nothing
    return {entry.step for entry in pending} | {step for step, *_ in undone} <= REMOVED_LAST
