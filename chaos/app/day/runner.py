"""Runs a game day from its stored state to its end: what others have begun first, then run by run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import structs

from chaos.app.day.document import day_permissions, is_under_way, new_state, refuse_unless_due
from chaos.app.day.entry import DayEntry, recover_runs
from chaos.app.day.events import notifying, send_begin, send_end, send_entry_end, send_halt, send_skips
from chaos.app.day.gates import GateChecker, await_gates
from chaos.app.day.report import reporting
from chaos.app.day.session import DayRequest, DaySession
from chaos.app.day.stop import DayHalted, DayStop, abort_watch, watch_day
from chaos.app.day.store import DayStore, day_store, day_time, hold_day_lock
from chaos.app.day.waits import await_pause, await_window, names_of_impaired
from chaos.app.wiring.connect import connect_cluster
from chaos.cluster.cluster_state import refuse_missing
from chaos.cluster.lease_lock import ClusterLock
from chaos.core.errors import UndoPending
from chaos.core.inventory import Inventory
from chaos.engine.connection import ClusterConnection, refuse_before_side_effects
from chaos.engine.stop import Interrupted, stop_on_signal
from chaos.gameday.state import DayRun, DayState, DayStatus, describe, startable
from chaos.gameday.stored_day import open_day
from chaos.gameday.transitions import StateConflict


def run_day(request: DayRequest, inventory: Inventory, checker: GateChecker) -> DayState:
    """Run the day, or continue with it; its state at the end. A finished day is only reported.

    Raises Refused if it must not begin, DayHalted, Interrupted (after the undo of its run; the same call continues),
    UndoPending, and Aborted if another process has taken it over.
    """
    with connect_cluster(inventory, seed=request.seed) as connection:
        with refuse_before_side_effects():
            refuse_missing(connection.kube, day_permissions(request.day, connection.inventory))
        name = request.day.document.metadata.name
        with hold_day_lock(connection, name, request.display.note) as lock:
            store = day_store(connection, name)
            with refuse_before_side_effects():
                state = _open(request, connection, store, lock)
            session = DaySession(request, connection, store, DayStop(connection.clock), state)
            if state.status is DayStatus.FINISHED:
                _report_again(session)
                return state
            with reporting(session), _supervised(session, lock):
                _work(session, checker)
            return session.state


def _report_again(session: DaySession) -> None:
    """Say how the finished day ended, and write its report: not with files that have changed since."""
    session.note(f"{describe(session.state)}; to start another day, name it with --id")
    if session.state.plan_hash == session.request.day.hash:
        with reporting(session):
            pass


def _open(request: DayRequest, connection: ClusterConnection, store: DayStore, lock: ClusterLock) -> DayState:
    """The stored state of the day, with this process as its holder. Raises Refused."""
    impaired = names_of_impaired(connection.kube)
    fresh = new_state(request.day, request.cluster, request.id, request.seed, day_time(connection), impaired)
    fresh = structs.replace(fresh, holder=lock.identity.holder)
    has_seed = request.seed is not None

    def change(stored: DayState | None) -> DayState:
        is_named = bool(request.id)
        if request.scheduled:
            is_named = is_named and not is_under_way(stored)
            refuse_unless_due(request.day, stored, fresh)
        return open_day(stored, fresh, is_named=is_named, has_seed=has_seed)

    return store.update(change)


@contextmanager
def _supervised(session: DaySession, lock: ClusterLock) -> Iterator[None]:
    """Signals, a halt and the loss of the day's lock stop the work in the block."""
    stop = session.stop
    lock.on_loss = lambda _: stop.on_loss("another process has taken or deleted the lock of the game day")
    lock.on_crash = stop.on_crash
    with (
        notifying(session),
        stop_on_signal(stop.on_signal),
        watch_day(session.store, session.epoch, stop),
        _reporting_halts(session),
    ):
        yield


@contextmanager
def _reporting_halts(session: DaySession) -> Iterator[None]:
    try:
        yield
    except DayHalted:
        if session.stop.halt:
            send_halt(session, session.stop.halt)
        raise


def _work(session: DaySession, checker: GateChecker) -> None:
    """Do what is left of the day."""
    state = session.state
    session.note(f"{describe(state)}, plan {state.plan_hash[:12]}, seed {state.seed}")
    recover_runs(session)
    session.refresh()
    session.stop.check()
    send_begin(session)
    while keys := startable(session.state):
        try:
            _next(session, session.find(keys[0]), checker)
        except StateConflict:
            session.refresh()
            session.stop.check()  # a halt came first
            raise
    session.stop.check()
    send_end(session)
    session.note(describe(session.state))


def _next(session: DaySession, run: DayRun, checker: GateChecker) -> None:
    """Wait until the run may begin, and run it; or skip it, and maybe more."""
    was_open = {each.key for each in session.state.runs if each.is_open}
    if not _may_begin(session, run, checker):
        send_skips(session, was_open)
        return
    session.note(f"entry {run.key} begins: {_position(session, run)}, seed {run.seed}")
    try:
        done = DayEntry(session, run).execute()
    except (DayHalted, Interrupted, UndoPending) as error:
        send_entry_end(session, session.find(run.key), None, pending=int(isinstance(error, UndoPending)))
        raise
    ended = session.find(run.key)
    send_entry_end(session, ended, done)
    send_skips(session, was_open - {run.key})
    report = f", report {done.report}" if done else ""
    reason = f": {ended.reason}" if ended.reason else ""
    session.note(f"entry {run.key} is {ended.verdict or ended.status}{reason}{report}")


def _may_begin(session: DaySession, run: DayRun, checker: GateChecker) -> bool:
    """Wait for pause, window and gates, while the abort conditions are judged. Whether the run is to begin now."""
    request = session.request
    with abort_watch(
        request.day.document.spec.abort, session.connection, request.day.registry, session.note
    ) as session.violated:
        await_pause(session)
        begins = (
            session.find(run.key).is_open  # without recovery, the day has ended
            and await_window(session, run)
            and await_gates(session, run, checker)
            and await_window(session, run)  # the gates may have taken long
        )
        session.stop.check()
        session.check_abort()
    session.violated = lambda: ""
    return begins


def _position(session: DaySession, run: DayRun) -> str:
    number = next(n for n, each in enumerate(session.state.runs, 1) if each.key == run.key)
    return f"{number} of {len(session.state.runs)}"
