"""One run of a day: an ordinary run of its experiment, whose begin, fault and end are stored in the day's state."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from chaos.app.day.abort_watch import violated_in_run
from chaos.app.day.events import send_entry_begin
from chaos.app.day.session import BY_ABORT_CONDITION, PATIENCE, DaySession
from chaos.app.day.stop import describe_halt
from chaos.app.run.experiment import RunRequest, run
from chaos.app.run.plan import ClusterInfo, new_run_id
from chaos.app.run.results import Run
from chaos.app.wiring.connect import connect_cluster
from chaos.core.errors import Aborted, Exit, NodefallError, UndoPending
from chaos.core.plan import Plan
from chaos.core.result import RunResult
from chaos.engine.stop import Interrupted, StopRequest
from chaos.gameday.state import DayRun, DayState, Verdict, verdict_of
from chaos.gameday.transitions import StateConflict, before_fault, begin, finish, give_back, halt, skip

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

        Raises UndoPending, DayHalted, Interrupted, Aborted and StateConflict, after which the day cannot go on now.
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
