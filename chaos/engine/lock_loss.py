"""A run that has lost the cluster's lock: what it may still undo, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable

from chaos.core.errors import NodefallError
from chaos.core.recording import LOCK_LOSS, EntryKind, RecordingEntry
from chaos.core.result import UndoResult
from chaos.core.store.journal_format import PendingUndo, entry_key
from chaos.engine.context import TICK, RunContext
from chaos.engine.recording_entries import encode_raw


def regain_lock(context: RunContext) -> str:
    """Wait for a lost lock, as whoever has it may be undoing this run. Returns why it is not held, or ""."""
    guard, clock = context.services.guard, context.services.clock
    if not guard.blocked() or context.state.lock_given_up:
        return guard.blocked()
    context.services.progress.note(f"{guard.blocked()}: the undo waits for the lock")

    def pause() -> None:
        context.services.progress.tick(clock.now())
        clock.sleep(TICK)  # cluster time goes on, no faster than wall time
        clock.resume()

    if why := guard.regain(pause):
        context.state.lock_given_up = True
        return why
    context.services.progress.note("the lock is held again")
    return ""


def may_be_undone(context: RunContext) -> Callable[[PendingUndo], bool]:
    """Whether another process may have undone an entry: the lock was lost, and the entry removed or replaced."""
    if not context.services.guard.loss:
        return lambda _: False
    try:
        published = context.services.published()
    except NodefallError:
        return lambda _: True  # the proof of each decides
    return lambda pending: entry_key(pending) not in published


def confirm_lock(context: RunContext) -> str:
    """Ask at the end whether the run was alone on the cluster. Returns why that is not proven, or "".

    The reason is recorded for every judgement of the recording.
    """
    services = context.services
    try:
        if not services.guard.renew():
            services.guard.check()
    except NodefallError as error:
        entry = encode_raw({LOCK_LOSS: [error.message]})
        services.emit(RecordingEntry(services.clock.now(), EntryKind.META, "recording", entry))
        return error.message
    return ""


def still_pending(pending: PendingUndo, why: str) -> UndoResult:
    """The result of an undo that was not attempted."""
    return UndoResult(pending.step, pending.action, pending.node, proven=False, because=why)
