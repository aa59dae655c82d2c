"""The runs of a day: their start, fault and end are stored in its state. What a dead process has left is undone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from chaos.app.day.events import send_entry_begin
from chaos.app.day.session import BY_ABORT_CONDITION, PATIENCE, DaySession
from chaos.app.day.stop import describe_halt, violated_in_run
from chaos.app.run.experiment import ClusterInfo, RunRequest, new_run_id, run
from chaos.app.run.results import Run
from chaos.app.undo.finish import UndoRequest, finish_undo
from chaos.app.undo.pending import guard_pending_undo
from chaos.app.undo.sources import import_run, load_info
from chaos.app.wiring.connect import connect_cluster
from chaos.app.wiring.logs import run_log
from chaos.cluster.journal_mirror import find_replica
from chaos.core.errors import Aborted, Exit, NodefallError, UndoPending, UsageError
from chaos.core.plan import Plan
from chaos.core.result import RunResult
from chaos.core.store import run_directory
from chaos.core.store.journal import read_entries
from chaos.core.text import shell_word
from chaos.core.verdict import Status
from chaos.engine.connection import lock_namespace
from chaos.engine.stop import Interrupted, StopRequest
from chaos.engine.undo import REMOVED_LAST
from chaos.gameday.state import DayRun, DayState, RunStatus, Verdict, verdict_of
from chaos.gameday.transitions import StateConflict, before_fault, begin, finish, give_back, halt, recover, skip

_BY_ABORT = "nodefall abort"
_FAULT_PATIENCE = 20.0  # wall seconds for the write before the fault


class DayEntry:
    """A run of the day that may begin now; implements ``chaos.engine.session.RunOwner``."""

    def __init__(self, session: DaySession, run: DayRun) -> None:
        self._session, self._key, self._seed = session, run.key, run.seed
        self._loaded = session.entries[run.key.entry].loaded
        self._id = new_run_id(self._loaded)
        self._stop, self._clock = StopRequest(), session.connection.clock

    def execute(self) -> Run | None:
        """Run it and store how it ended; None for a run that was refused or failed, without a result.

        Raises UndoPending, DayHalted, Interrupted, Aborted and StateConflict, after which the day cannot continue now.
        """
        session = self._session
        self._update(partial(begin, key=self._key, run=self._id, epoch=session.epoch, now=session.now()))
        send_entry_begin(session, session.find(self._key))
        try:
            done = self._run()
        except (UndoPending, StateConflict):
            raise  # the state stays as it is: the undo comes first
        except Interrupted:
            self._give_back()
            raise
        except NodefallError as error:
            self._store_error(error)
            return None
        self._store_end(done.result)
        return done

    def _run(self) -> Run:
        request = self._session.request
        with connect_cluster(self._session.connection.inventory) as connected:
            connection = replace(connected, lab_pid=self._session.connection.lab_pid)
            self._clock = connection.clock
            options = RunRequest(
                self._loaded, request.reports, self._confirm, self._seed, run_id=self._id, awaits_lock=True
            )
            try:
                with closing(request.display.open_progress()) as progress:
                    return run(options, connection, progress, self)
            finally:
                stop = self._session.stop
                stop.end_run()
                stop.signum = stop.signum or self._stop.signum  # one that came too late for the run's verdict

    def _confirm(self, plan: Plan, cluster: ClusterInfo, nodes: list[str]) -> None:
        self._session.stop.check()
        self._session.request.confirm(plan, cluster, nodes)
        self._session.stop.check()

    def begin(self, directory: Path, stop: StopRequest) -> None:  # noqa: ARG002 - of the port
        """The run can be stopped from now on."""
        self._stop = stop
        self._session.stop.begin_run(stop, self._clock)

    def before_fault(self) -> None:
        """From here on the run is never repeated. Raises StateConflict on a halted day."""
        change = partial(before_fault, key=self._key, run=self._id, epoch=self._session.epoch)
        try:
            self._update(change, _FAULT_PATIENCE)
        except StateConflict:
            self._session.refresh()
            raise

    def _store_end(self, result: RunResult) -> None:
        """Store how the run ended. Raises as :meth:`execute`."""
        session = self._session
        if result.exit_code == Exit.UNDO_PENDING:
            raise UndoPending(
                f"{self._key} has a pending undo: {'; '.join(result.leftovers)}",
                hint=f"run the same command again, or nodefall undo {self._id}",
            )
        if session.stop.loss:
            raise Aborted(session.stop.loss, hint="see nodefall gameday status")
        session.refresh()
        why, verdict = self._why_stopped(result), verdict_of(result.exit_code)
        if violated := violated_in_run(session.request.day.document.spec.abort, result):
            # First: a process that is killed before the run's end is stored leaves a day that is halted.
            self._update(partial(halt, by=BY_ABORT_CONDITION, reason=violated, now=session.now()))
        if why and verdict == "inconclusive":  # else it was stopped after its last verdict
            self._store_early_end(why)
        elif session.find(self._key).may_have_injected:
            self._finish(verdict, result.headline.removeprefix(f"{verdict}: "))
        else:
            self._skip(result.headline)
        session.stop.check()

    def _store_error(self, error: NodefallError) -> None:
        """The run has failed without a result, and without a pending undo."""
        self._session.refresh()
        if self._session.find(self._key).may_have_injected:
            self._finish("inconclusive", error.message)
        elif self._session.stop.is_set:
            self._give_back()
        else:
            self._skip(error.message)
        self._session.stop.check()

    def _why_stopped(self, result: RunResult) -> str:
        """Why the run was stopped from outside, "" if it was not."""
        session, stop = self._session, self._session.stop
        if stop.halt:
            return describe_halt(stop.halt)
        if result.exit_code > 128:
            stop.signum = stop.signum or result.exit_code - 128
            return f"stopped by signal {stop.signum}"
        if self._stop.reason:
            self._update(partial(halt, by=_BY_ABORT, reason=self._stop.reason, now=session.now()))
            return f"{_BY_ABORT}: {self._stop.reason}"
        return ""

    def _store_early_end(self, why: str) -> None:
        if self._session.find(self._key).may_have_injected:
            self._finish("interrupted", why)
        else:
            self._give_back()

    def _finish(self, verdict: Verdict, reason: str) -> None:
        session = self._session
        now = session.now()
        self._update(lambda state: finish(state, self._key, self._id, verdict, session.epoch, now, reason))

    def _give_back(self) -> None:
        self._update(partial(give_back, key=self._key, run=self._id, epoch=self._session.epoch))

    def _skip(self, reason: str) -> None:
        session = self._session
        session.note(f"skipping {self._key}: {reason}")

        def change(state: DayState) -> DayState:
            back = give_back(state, self._key, self._id, session.epoch)
            return skip(back, self._key, reason, session.epoch, session.now())

        self._update(change)

    def _update(self, change: Callable[[DayState], DayState], patience: float = PATIENCE) -> None:
        self._session.update(change, patience)


_VERDICTS: dict[int, Verdict] = {Exit.HELD: "held", Exit.VIOLATED: "violated", Exit.INCONCLUSIVE: "inconclusive"}
_WITH_PENDING_UNDO: dict[Status, Verdict] = {Status.HELD: "held", Status.VIOLATED: "violated"}


def recover_runs(session: DaySession) -> None:
    """Finish the undo of every run that is running by the state, and store how it ended.

    Raises UndoPending if an undo could not be finished, Refused if it must be confirmed and is not.
    """
    for each in session.state.runs:
        if each.status is RunStatus.RUNNING:
            _recover(session, each)


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
    session.note(f"{run.key} is {recovered.verdict or 'to be repeated: its fault was not injected'}")


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
        raise UndoPending(
            f"{run.key} has a pending undo: {', '.join(steps)}", hint=f"run nodefall undo {shell_word(directory)}"
        )


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
