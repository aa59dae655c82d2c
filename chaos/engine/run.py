"""One run: arm, steady state, inject, observe, roll back, recover, judge."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

from msgspec import structs

from chaos.engine.context import TICK, Interrupted, RunContext
from chaos.engine.inject import await_proofs, inject
from chaos.engine.recording_entries import action_entry, meta_entry
from chaos.engine.rollback import roll_back
from chaos.hosts.observer import PERIOD
from chaos.kube.workload import apply, removal
from chaos.model.action import Undo
from chaos.model.command import KubeCommand
from chaos.model.errors import Aborted, Exit, NodefallError, Refused
from chaos.model.ports import Observer
from chaos.model.result import RunResult, UndoResult
from chaos.model.text import on_node
from chaos.model.verdict import Status
from chaos.store.journal import PendingUndo

SYNC_SECONDS = 60.0  # until every observer has seen everything once
STEADY_SECONDS = 180.0  # for the workload to become available
WORKLOAD = "workload"  # action name of the journal entry that removes it


@dataclass(frozen=True, slots=True)
class RunInputs:
    """What a run starts with: ``workload`` are the commands that apply it, ``meta`` the recording's first line.

    ``observers`` are started stage by stage: later ones may look up what earlier ones have seen. ``last_looks`` are
    taken before the final judgement; what they cannot see, they record as blindness.
    """

    observers: Sequence[Sequence[Observer]]
    workload: Sequence[KubeCommand]
    meta: dict[str, Any]
    final_samples: Sequence[Callable[[], None]] = ()


def execute(context: RunContext, prepared: RunInputs) -> RunResult:
    """Run it. Whatever happens, what was done is undone; the result's exit code says how it ended.

    The workload is removed last, when nobody looks any more: its end says nothing about the cluster. Raises what made
    going on impossible, after undoing; what is still owed then, the journal tells.
    """
    undone: list[UndoResult] = []
    unsettled = ""
    with _abort_on_thread_crash(context):
        try:
            ended = _attempt(context, prepared)
            undone = _roll_back(context, lambda owed: owed.action != WORKLOAD)
            ended = ended or _recover(context)
            for look in prepared.final_samples:
                look()
            steady = tuple(context.judge_steady_state())
            result = context.judge(False)
        finally:
            for observer in chain.from_iterable(prepared.observers):
                observer.stop()
            failed = {(entry.step, entry.node) for entry in undone}
            undone += _roll_back(context, lambda owed: (owed.step, owed.node) not in failed)
            unsettled = context.reconcile()
    return _result(context, structs.replace(result, steady_state=result.steady_state or steady), undone, ended, unsettled)


def _attempt(context: RunContext, prepared: RunInputs) -> NodefallError | Interrupted | None:
    """Everything up to the last verdict; why it ended early, or None."""
    begun = False
    try:
        _arm(context, prepared)
        _steady_state(context)
        context.progress.phase("inject")
        begun = True
        inject(context)
        await_proofs(context)
        _observe(context)
    except (NodefallError, Interrupted) as error:
        context.progress.note(_describe_end(error))
        # "Refused" promises that nothing was touched.
        return Aborted(error.message, hint=error.hint) if begun and isinstance(error, NodefallError) else error
    return None


@contextmanager
def _abort_on_thread_crash(context: RunContext) -> Iterator[None]:
    """A thread that dies must not make us blind without notice: its crash ends the run."""
    before = threading.excepthook

    def crashed(args: threading.ExceptHookArgs) -> None:
        if context.stop.crash is None and args.exc_value is not None:
            context.stop.crash = args.exc_value

    threading.excepthook = crashed
    try:
        yield
    finally:
        threading.excepthook = before


def _arm(context: RunContext, prepared: RunInputs) -> None:
    context.progress.phase("arm")
    context.guard.check()
    context.emit(meta_entry(context.clock.now(), prepared.meta))
    for stage in prepared.observers:
        _start_observers(context, stage)
    if prepared.workload:
        namespace = context.plan.namespace
        undo = removal(prepared.workload, namespace, context.plan.run)
        context.journal.record_intent(WORKLOAD, WORKLOAD, namespace, undo, context.clock.now())
        context.publish()
        context.progress.note(f"applying the workload in namespace {namespace}")
        apply(context.kube, list(prepared.workload))


def _start_observers(context: RunContext, observers: Sequence[Observer]) -> None:
    """Start them and wait until each has seen everything once. Raises Refused."""
    for observer in observers:
        observer.start(context.emit)
    deadline = context.clock.now() + SYNC_SECONDS
    while late := [observer.name for observer in observers if not observer.has_synced()]:
        context.stop.check()
        if context.clock.now() > deadline:
            raise Refused(f"not seen within {SYNC_SECONDS:g}s: {', '.join(late)}")
        context.clock.sleep(TICK / 4)


def _steady_state(context: RunContext) -> None:
    """Wait until it holds. Raises Refused, naming what does not."""
    context.progress.phase("steady state")
    deadline = context.clock.now() + STEADY_SECONDS
    while True:
        context.stop.check()
        open_ = [verdict for verdict in context.judge_steady_state() if verdict.status is not Status.HELD]
        if not open_:
            return
        if context.clock.now() > deadline:
            raise Refused(f"no steady state: {open_[0].name}: {open_[0].because}")
        context.progress.tick(context.clock.now())
        context.clock.sleep(TICK)


def _observe(context: RunContext) -> None:
    """Until every hypothesis is decided; each has a deadline. Hosts are read a last time after the last of them."""
    context.progress.phase("observe")
    while any(verdict.status is Status.PENDING for verdict in context.tick().hypothesis):
        context.clock.sleep(TICK)
    context.wait_until(context.clock.now() + 2 * PERIOD)


def _recover(context: RunContext) -> Interrupted | None:
    """Until the steady state holds again or its deadline is over; stopping here loses only this verdict."""
    context.progress.phase("recovery")
    try:
        while any(verdict.status is Status.PENDING for verdict in context.tick().recovery):
            context.clock.sleep(TICK)
    except (NodefallError, Interrupted) as error:
        context.progress.note(_describe_end(error))
        return error if isinstance(error, Interrupted) else None
    return None


def _roll_back(context: RunContext, choose: Callable[[PendingUndo], bool]) -> list[UndoResult]:
    """Undo what is owed. Runs to its end: Ctrl-C does not stop it."""
    context.clock.resume()
    if not any(choose(owed) for owed in context.journal.pending()):
        return []
    context.progress.phase("roll back")
    by_step = {(planned.step, planned.node): planned for planned in context.plan.steps}

    def begun(owed: PendingUndo) -> None:
        planned = by_step.get((owed.step, owed.node))
        if planned and planned.undo != Undo():
            context.emit(action_entry(context.clock.now(), planned, "undo"))

    def unsure(owed: PendingUndo) -> bool:
        return (owed.step, owed.node) in context.abandoned_steps

    undone = roll_back(context.journal, context.hosts, context.clock, context.progress, choose, begun, unsure)
    for entry in undone:
        planned = by_step.get((entry.step, entry.node))
        if planned and entry.proven and planned.undo != Undo():
            evidence = {"because": entry.because}
            context.emit(action_entry(context.clock.now(), planned, "undone", evidence=evidence))
            context.emit_undone(planned, entry.because)
    return undone


def _describe_end(error: NodefallError | Interrupted) -> str:
    return error.message if isinstance(error, NodefallError) else f"stopping on {error}; undoing first"


def _result(
    context: RunContext,
    result: RunResult,
    undone: list[UndoResult],
    ended: NodefallError | Interrupted | None,
    unsettled: str,
) -> RunResult:
    """The verdicts, and how it really ended: an owed undo beats an interruption beats an abort beats the verdicts."""
    code, status, headline = result.exit_code, result.status, result.headline
    if isinstance(ended, Interrupted):
        code, status = 128 + ended.signum, Status.INCONCLUSIVE
        headline = f"interrupted by {ended} before every question was answered"
    elif ended is not None:
        code, status = int(ended.code), Status.INCONCLUSIVE
        headline = ("refused: " if isinstance(ended, Refused) else "aborted: ") + ended.message
    owed = [f"undo of {on_node(entry.step, entry.node)}: {entry.because}" for entry in undone if not entry.proven]
    owed += [unsettled] if unsettled else []
    return structs.replace(
        result,
        exit_code=int(Exit.UNDO_PENDING) if owed else code,
        status=status,
        headline=headline,
        undo=tuple(undone),
        left_behind=tuple(owed),
        ended=context.clock.now(),
    )
