"""The undo of a run, including after the loss of the cluster's lock: which entries it may still undo, and what it
reports.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from chaos.core.action import Undo
from chaos.core.errors import NodefallError
from chaos.core.recording import LOCK_LOSS, ActionPhase, EntryKind, RecordingEntry
from chaos.core.result import UndoResult
from chaos.core.store.journal_format import PendingUndo, entry_key
from chaos.engine.recorder import action_entry, encode_raw
from chaos.engine.rollback import UndoRules, roll_back
from chaos.engine.session import TICK, WORKLOAD, RunSession
from chaos.machines.pod.manifest import HELPER_PODS

REMOVED_LAST = frozenset({WORKLOAD, HELPER_PODS})  # of all that is in a journal
_MAX_ROUNDS = 3  # of an undo whose lock is lost again
_log = logging.getLogger(__name__)


def roll_back_run(session: RunSession, select: Callable[[PendingUndo], bool]) -> list[UndoResult]:
    """Undo the selected pending entries. Ctrl-C does not stop this phase.

    If the cluster's lock is lost, the undo waits until this run holds it again: others may be undoing the same entries.
    """
    session.clock.resume()
    if not any(select(pending) for pending in session.journal.pending()):
        return []
    session.progress.phase("roll back")
    results: list[UndoResult] = []
    for _ in range(_MAX_ROUNDS):
        if why := _regain_lock(session):
            return results + [_still_pending(entry, why) for entry in session.journal.pending() if select(entry)]
        undone = _roll_back_once(session, select)
        if not session.lock.blocked() or all(entry.proven for entry in undone):
            return results + undone
        results += [entry for entry in undone if entry.proven]
    return results + [entry for entry in undone if not entry.proven]


def _roll_back_once(session: RunSession, select: Callable[[PendingUndo], bool]) -> list[UndoResult]:
    """Undo the selected entries until the cluster's lock is lost."""
    by_step = {(planned.step, planned.node): planned for planned in session.plan.steps}

    def on_begin(pending: PendingUndo) -> None:
        planned = by_step.get((pending.step, pending.node))
        if planned and planned.undo != Undo():
            session.recorder.emit(action_entry(session.clock.now(), planned, ActionPhase.UNDO))

    def is_uncertain(pending: PendingUndo) -> bool:
        return (pending.step, pending.node) in session.abandoned_steps

    rules = UndoRules(select, on_begin, is_uncertain, _may_be_undone(session), session.lock.blocked)
    undone = roll_back(session.journal, session.hosts, session.clock, session.progress, rules)
    for entry in undone:
        planned = by_step.get((entry.step, entry.node))
        if planned and entry.proven and planned.undo != Undo():
            evidence = {"because": entry.because}
            session.recorder.emit(action_entry(session.clock.now(), planned, ActionPhase.UNDONE, evidence=evidence))
            session.emit_undone(planned, entry.because)
    return undone


def reconcile(session: RunSession) -> str:
    """Update the journal in the cluster, which another process may be reading. Returns why that failed, or ""."""
    if session.journal.has_replica and (why := _regain_lock(session)):
        return f"the journal in the cluster: {why}"
    why = session.mirror.reconcile()
    try:
        if why and session.lock.renew():
            session.mirror.published()  # this run holds the lock, so its journal is the valid one
            return session.mirror.reconcile()
    except NodefallError as error:
        _log.debug("the journal in the cluster was not updated again: %s", error.message)
    return why


def _regain_lock(session: RunSession) -> str:
    """Wait for a lost lock, because its holder may be undoing this run. Returns why the lock is not held, or ""."""
    guard, clock = session.lock, session.clock
    if not guard.blocked() or session.lock_given_up:
        return guard.blocked()
    session.progress.note(f"{guard.blocked()}: the undo waits for the lock")

    def pause() -> None:
        session.progress.tick(clock.now())
        clock.sleep(TICK)  # cluster time continues, no faster than wall time
        clock.resume()

    if why := guard.regain(pause):
        session.lock_given_up = True
        return why
    session.progress.note("the lock is held again")
    return ""


def _may_be_undone(session: RunSession) -> Callable[[PendingUndo], bool]:
    """Whether another process may have undone an entry: the lock was lost, and the entry removed or replaced."""
    if not session.lock.loss:
        return lambda _: False
    try:
        published = session.mirror.published()
    except NodefallError:
        return lambda _: True  # the proof of each decides
    return lambda pending: entry_key(pending) not in published


def confirm_lock(session: RunSession) -> str:
    """Check at the end whether the run was alone on the cluster. Returns why that is not proven, or "".

    The reason is recorded, so that every judgement of the recording includes it.
    """
    try:
        if not session.lock.renew():
            session.lock.check()
    except NodefallError as error:
        entry = encode_raw({LOCK_LOSS: [error.message]})
        session.recorder.emit(RecordingEntry(session.clock.now(), EntryKind.META, "recording", entry))
        return error.message
    return ""


def _still_pending(pending: PendingUndo, why: str) -> UndoResult:
    """The result of an undo that was not attempted."""
    return UndoResult(pending.step, pending.action, pending.node, proven=False, because=why)
