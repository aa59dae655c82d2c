"""One run: arm, steady state, inject, observe, roll back, recover, judge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import chain

import msgspec
from msgspec import structs

from chaos.cluster.workload import apply, removal, workload_state
from chaos.core.action import Undo
from chaos.core.errors import Aborted, Exit, NodefallError, Refused
from chaos.core.ports import Observer
from chaos.core.recording import ActionPhase, RecordingEntry
from chaos.core.result import ABORTED, INTERRUPTED, REFUSED, RunResult, UndoResult
from chaos.core.store.journal_format import PendingUndo
from chaos.core.text import on_node
from chaos.core.verdict import Status
from chaos.engine.context import TICK, RunContext
from chaos.engine.inject import await_proofs, inject
from chaos.engine.lifecycle_taints import TAINT_SECONDS, await_taints, read_taints
from chaos.engine.lock_loss import confirm_lock, may_be_undone, regain_lock, still_pending
from chaos.engine.recording_entries import action_entry, meta_entry
from chaos.engine.rollback import UndoRules, roll_back
from chaos.engine.steady_state import await_steady_state
from chaos.engine.stop import Interrupted
from chaos.machines.observer import PERIOD
from chaos.machines.pod.manifest import HELPER_PODS
from chaos.machines.pod.manifest import removal as pods_removal

SYNC_SECONDS = 60.0  # for observers to complete their first list or sample
_MAX_ROUNDS = 3  # of an undo whose lock is lost again
WORKLOAD = "workload"  # action name of the journal entry that removes the workload
REMOVED_LAST = frozenset({WORKLOAD, HELPER_PODS})  # of all that is in a journal
_log = logging.getLogger(__name__)


def execute(context: RunContext) -> RunResult:
    """Run the experiment; the result's exit code is how the run ended. The effects are undone in any case.

    The workload and helper pods are removed last, after the observers have stopped: their end is no finding. Raises
    what made it impossible to go on, after the undo; undo that is still pending then is in the journal.
    """
    undone: list[UndoResult] = []
    unreconciled = ""
    try:
        ended = _attempt(context)
        undone = _roll_back(context, lambda pending: pending.action not in REMOVED_LAST)
        ended = ended or _recover(context)
        for sample in context.inputs.final_samples:
            sample()
        ended = ended or _await_recovery(context)  # the last samples may show that it was lost again
        steady = tuple(context.services.judge_steady_state())
        result = context.services.judge(False)
        if ended is None:
            context.report_final(result)
    finally:
        for observer in chain.from_iterable(context.inputs.observers):
            observer.stop()
        failed = {(entry.step, entry.node) for entry in undone}
        undone += _roll_back(context, lambda pending: (pending.step, pending.node) not in failed)
        unreconciled = _reconcile(context)
    if why := confirm_lock(context):
        result = context.services.judge(False)
        if ended is None or (context.services.guard.loss and not isinstance(ended, Interrupted)):
            ended = Aborted(why)
    result = structs.replace(result, steady_state=result.steady_state or steady)
    tainted = _await_taints(context, undone, is_interrupted=isinstance(ended, Interrupted))
    return _result(context, result, undone, ended, [unreconciled] if unreconciled else [], tainted)


def _await_taints(context: RunContext, undone: list[UndoResult], *, is_interrupted: bool) -> list[str]:
    """The taints of the fault that remain on nodes whose undo is proven, after a wait for Kubernetes to remove them."""
    services = context.services
    nodes = {entry.node for entry in undone if entry.proven} - {entry.node for entry in undone if not entry.proven}
    seconds = 0.0 if is_interrupted else TAINT_SECONDS
    noted = False

    def on_wait(remaining: Sequence[str]) -> None:
        nonlocal noted
        services.progress.tick(services.clock.now())
        if not noted:
            services.progress.note(f"waiting for up to {seconds:.0f} s: {'; '.join(remaining)}")
            noted = True

    return await_taints(services.kube, services.clock, context.state.taints_before, nodes, seconds, on_wait)


def _attempt(context: RunContext) -> NodefallError | Interrupted | None:
    """Everything up to the last verdict. Returns why the run ended early, or None."""
    begun = False
    try:
        _arm(context)
        await_steady_state(context)
        context.services.before_fault()
        context.services.progress.phase("inject")
        begun = True
        context.state.taints_before = read_taints(context.services.kube, {t.node for t in context.inputs.plan.targets})
        inject(context)
        await_proofs(context)
        _observe(context)
    except (NodefallError, Interrupted) as error:
        context.services.progress.note(_describe_end(error))
        # "Refused" promises that nothing was touched.
        return Aborted(error.message, hint=error.hint) if begun and isinstance(error, NodefallError) else error
    return None


def _arm(context: RunContext) -> None:
    """Start the observers and apply the workload."""
    inputs, services = context.inputs, context.services
    services.progress.phase("arm")
    services.guard.check()
    services.emit(meta_entry(services.clock.now(), inputs.meta))
    for namespace in inputs.helper_namespaces:
        undo = pods_removal(namespace, inputs.plan.run)
        services.journal.record_intent(HELPER_PODS, HELPER_PODS, namespace, undo, services.clock.now(), state={})
    for stage in inputs.observers:
        _start_observers(context, stage)
    if inputs.workload:
        namespace = inputs.plan.namespace
        state = workload_state(inputs.workload)
        undo = removal(state, namespace, inputs.plan.run)
        if not services.guard.renew():
            services.guard.check()
        encoded = msgspec.to_builtins(state)
        services.journal.record_intent(WORKLOAD, WORKLOAD, namespace, undo, services.clock.now(), state=encoded)
        services.publish()
        services.guard.check()  # the journal took time
        services.progress.note(f"applying the workload in namespace {namespace}")
        apply(services.kube, list(inputs.workload))


def _start_observers(context: RunContext, observers: Sequence[Observer]) -> None:
    """Start ``observers`` and wait until all have synced. Raises Refused."""
    clock = context.services.clock

    def sink(entry: RecordingEntry) -> None:
        try:
            context.services.emit(entry)
        except Exception as error:
            _log.exception("recording %s %s failed", entry.kind, entry.type)
            context.stop.report_crash(error)  # an entry that is lost without notice would be a wrong verdict
            raise

    for observer in observers:
        observer.start(sink)
    deadline = clock.now() + SYNC_SECONDS
    clock.settle()
    while late := [observer.name for observer in observers if not observer.has_synced()]:
        context.stop.check()
        if clock.now() > deadline:
            raise Refused(f"observers did not sync within {SYNC_SECONDS:g} s: {', '.join(late)}")
        context.services.progress.tick(clock.now())
        clock.sleep(TICK / 4)


def _observe(context: RunContext) -> None:
    """Wait until every hypothesis is decided (each has a deadline), then for one more sample of the hosts."""
    clock = context.services.clock
    context.services.progress.phase("observe")
    while any(verdict.status is Status.PENDING for verdict in context.tick().hypothesis):
        clock.sleep(TICK)
    context.wait_until(clock.now() + 2 * PERIOD)


def _recover(context: RunContext) -> Interrupted | None:
    """Wait until the steady state holds again or its deadline is over. An early end costs only this verdict."""
    context.services.progress.phase("recovery")
    return _await_recovery(context)


def _await_recovery(context: RunContext) -> Interrupted | None:
    """Wait until every verdict on the recovery is decided."""
    try:
        while any(verdict.status is Status.PENDING for verdict in context.tick().recovery):
            context.services.clock.sleep(TICK)
    except (NodefallError, Interrupted) as error:
        context.services.progress.note(_describe_end(error))
        return error if isinstance(error, Interrupted) else None
    return None


def _roll_back(context: RunContext, select: Callable[[PendingUndo], bool]) -> list[UndoResult]:
    """Undo the selected pending entries. Ctrl-C does not stop this phase.

    Once the cluster's lock is lost, nothing is undone before this run holds it again: others may be undoing the same.
    """
    services = context.services
    services.clock.resume()
    if not any(select(pending) for pending in services.journal.pending()):
        return []
    services.progress.phase("roll back")
    results: list[UndoResult] = []
    for _ in range(_MAX_ROUNDS):
        if why := regain_lock(context):
            return results + [still_pending(entry, why) for entry in services.journal.pending() if select(entry)]
        undone = _roll_back_once(context, select)
        if not services.guard.blocked() or all(entry.proven for entry in undone):
            return results + undone
        results += [entry for entry in undone if entry.proven]
    return results + [entry for entry in undone if not entry.proven]


def _roll_back_once(context: RunContext, select: Callable[[PendingUndo], bool]) -> list[UndoResult]:
    """Undo the selected entries until the cluster's lock is lost."""
    services = context.services
    by_step = {(planned.step, planned.node): planned for planned in context.inputs.plan.steps}

    def on_begin(pending: PendingUndo) -> None:
        planned = by_step.get((pending.step, pending.node))
        if planned and planned.undo != Undo():
            services.emit(action_entry(services.clock.now(), planned, ActionPhase.UNDO))

    def is_uncertain(pending: PendingUndo) -> bool:
        return (pending.step, pending.node) in context.state.abandoned_steps

    rules = UndoRules(select, on_begin, is_uncertain, may_be_undone(context), services.guard.blocked)
    undone = roll_back(services.journal, services.hosts, services.clock, services.progress, rules)
    for entry in undone:
        planned = by_step.get((entry.step, entry.node))
        if planned and entry.proven and planned.undo != Undo():
            evidence = {"because": entry.because}
            services.emit(action_entry(services.clock.now(), planned, ActionPhase.UNDONE, evidence=evidence))
            context.emit_undone(planned, entry.because)
    return undone


def _reconcile(context: RunContext) -> str:
    """Update the journal in the cluster, which another process may be reading. Returns why that failed, or ""."""
    services = context.services
    if services.journal.has_replica and (why := regain_lock(context)):
        return f"the journal in the cluster: {why}"
    why = services.reconcile()
    try:
        if why and services.guard.renew():
            services.published()  # this run holds the lock, so its journal is the valid one
            return services.reconcile()
    except NodefallError as error:
        _log.debug("the journal in the cluster was not updated again: %s", error.message)
    return why


def _describe_end(error: NodefallError | Interrupted) -> str:
    return error.message if isinstance(error, NodefallError) else f"stopping on {error}; undoing first"


def _result(
    context: RunContext,
    result: RunResult,
    undone: list[UndoResult],
    ended: NodefallError | Interrupted | None,
    unreconciled: list[str],
    tainted: list[str],
) -> RunResult:
    """The verdicts and how the run ended: pending undo beats an interruption, which beats an abort and the verdicts.

    ``tainted``: taints are left behind, but nodefall has nothing to undo.
    """
    code, status, headline = result.exit_code, result.status, result.headline
    if isinstance(ended, Interrupted):
        code, status = 128 + ended.signum, Status.INCONCLUSIVE
        headline = f"{INTERRUPTED}{ended} before every question was answered"
    elif ended is not None:
        code, status = int(ended.code), Status.INCONCLUSIVE
        headline = (REFUSED if isinstance(ended, Refused) else ABORTED) + ended.message
    leftovers = [f"undo of {on_node(entry.step, entry.node)}: {entry.because}" for entry in undone if not entry.proven]
    leftovers += unreconciled
    return structs.replace(
        result,
        exit_code=int(Exit.UNDO_PENDING) if leftovers else code,
        status=status,
        headline=headline,
        tally="" if ended else result.tally,
        sentence="" if ended else result.sentence,
        undo=tuple(undone),
        leftovers=(*leftovers, *tainted),
        ended=context.services.clock.now(),
    )
