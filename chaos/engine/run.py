"""One run: arm, steady state, inject, observe, roll back, recover, judge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import structs

from chaos import __version__
from chaos.cluster.workload import apply, removal, workload_state
from chaos.core.errors import Aborted, Exit, NodefallError, PluginError, Refused
from chaos.core.ports import Observer
from chaos.core.recording import (
    INTERRUPTED_AT,
    OVERRIDDEN,
    SLACK,
    WARNINGS,
    BlindWindow,
    EntryKind,
    RecordingEntry,
)
from chaos.core.result import ABORTED, INTERRUPTED, REFUSED, RunResult, UndoResult
from chaos.core.text import on_node
from chaos.core.verdict import Status
from chaos.engine.inject import await_proofs, inject
from chaos.engine.recorder import meta_entry
from chaos.engine.session import TICK, WORKLOAD, RunSession
from chaos.engine.stop import Interrupted
from chaos.engine.undo import REMOVED_LAST, confirm_lock, reconcile, roll_back_run
from chaos.engine.waits import TAINT_SECONDS, await_steady_state, await_taints, read_taints
from chaos.machines.observer import PERIOD
from chaos.machines.pod.manifest import HELPER_PODS
from chaos.machines.pod.manifest import removal as pods_removal

SYNC_SECONDS = 60.0  # for observers to complete their first list or sample
_log = logging.getLogger(__name__)


def execute(session: RunSession) -> RunResult:
    """Run the experiment, and always undo its effects. The result's exit code says how the run ended.

    The workload and helper pods are removed after the observers have stopped, so that nothing reports it. Raises
    the error that ended the run, after the undo; any undo that is still pending is in the journal.
    """
    undone: list[UndoResult] = []
    unreconciled = ""
    try:
        ended = _attempt(session)
        undone = roll_back_run(session, lambda pending: pending.action not in REMOVED_LAST)
        ended = ended or _recover(session)
        _call_each(session, [sampler.final_sample for sampler in session.observers.samplers])
        ended = ended or _await_recovery(session)  # the last samples may show that it was lost again
        steady = tuple(session.judge.steady_state())
        result = session.judge.judge(False)
        if ended is None:
            session.report_final(result)
    finally:
        _call_each(session, [observer.stop for observer in chain.from_iterable(session.observers.stages)])
        failed = {(entry.step, entry.node) for entry in undone}
        undone += roll_back_run(session, lambda pending: (pending.step, pending.node) not in failed)
        unreconciled = reconcile(session)
    if why := confirm_lock(session):
        result = session.judge.judge(False)
        if ended is None or (session.lock.loss and not isinstance(ended, Interrupted)):
            ended = Aborted(why)
    result = structs.replace(result, steady_state=result.steady_state or steady)
    tainted = _await_taints(session, undone, is_interrupted=isinstance(ended, Interrupted))
    return _result(session, result, undone, ended, [unreconciled] if unreconciled else [], tainted)


def _call_each(session: RunSession, calls: Sequence[Callable[[], None]]) -> None:
    """Call each. A plug-in that fails at the end of a run is named, and costs neither the result nor the others."""
    for call in calls:
        try:
            call()
        except PluginError as error:
            _log.warning("%s", error.message)
            session.progress.note(error.message)


def _await_taints(session: RunSession, undone: list[UndoResult], *, is_interrupted: bool) -> list[str]:
    """Wait for Kubernetes to remove the fault's taints from nodes with a proven undo. Returns those that remain."""
    nodes = {entry.node for entry in undone if entry.proven} - {entry.node for entry in undone if not entry.proven}
    seconds = 0.0 if is_interrupted else TAINT_SECONDS
    noted = False

    def on_wait(remaining: Sequence[str]) -> None:
        nonlocal noted
        session.progress.tick(session.clock.now())
        if not noted:
            session.progress.note(f"waiting for up to {seconds:.0f} s: {'; '.join(remaining)}")
            noted = True

    return await_taints(session.kube, session.clock, session.taints_before, nodes, seconds, on_wait)


def _attempt(session: RunSession) -> NodefallError | Interrupted | None:
    """Run all phases up to the last verdict. Returns why the run ended early, or None."""
    begun = False
    try:
        _arm(session)
        await_steady_state(session)
        session.owner.before_fault()
        session.progress.phase("inject")
        begun = True
        session.taints_before = read_taints(session.kube, {t.node for t in session.plan.targets})
        inject(session)
        await_proofs(session)
        _observe(session)
    except (NodefallError, Interrupted) as error:
        _note_end(session, error)
        # "Refused" promises that nothing was touched.
        return Aborted(error.message, hint=error.hint) if begun and isinstance(error, NodefallError) else error
    return None


def _arm(session: RunSession) -> None:
    """Start the observers and apply the workload."""
    plan = session.plan
    session.progress.phase("arm")
    session.lock.check()
    session.recorder.emit(meta_entry(session.clock.now(), _meta(session)))
    for namespace in session.helper_namespaces:
        undo = pods_removal(namespace, plan.run)
        session.journal.record_intent(HELPER_PODS, HELPER_PODS, namespace, undo, session.clock.now(), state={})
    for stage in session.observers.stages:
        _start_observers(session, stage)
    workload, namespace = session.workload, plan.namespace
    if workload:
        state = workload_state(workload)
        undo = removal(state, namespace, plan.run)
        if not session.lock.renew():
            session.lock.check()
        encoded = msgspec.to_builtins(state)
        session.journal.record_intent(WORKLOAD, WORKLOAD, namespace, undo, session.clock.now(), state=encoded)
        session.mirror.publish()
        session.lock.check()  # the journal took time
        session.progress.note(f"applying the workload in namespace {namespace}")
        apply(session.kube, list(workload))


def _meta(session: RunSession) -> Mapping[str, Any]:
    """The first entry of the recording."""
    connection, plan = session.connection, session.plan
    cluster = connection.inventory.cluster
    return {
        "run": plan.run,
        "experiment": plan.experiment,
        "planHash": plan.hash,
        "experimentHash": plan.experiment_hash,
        "seed": plan.seed,
        "kubernetes": connection.version,
        "clusterUID": connection.uid,
        "simulated": bool(cluster and cluster.simulated),
        "targets": {target.node: target.target for target in plan.targets},
        "workload": plan.namespace,
        "nodes": session.nodes,
        "by": session.lock.identity.holder,
        "nodefall": __version__,
        **({SLACK: plan.slack} if plan.slack > 1 else {}),
        **({OVERRIDDEN: plan.overridden} if plan.overridden else {}),
        **({WARNINGS: plan.warnings} if plan.warnings else {}),
    }


def _start_observers(session: RunSession, observers: Sequence[Observer]) -> None:
    """Start ``observers`` and wait until all have synced. Raises Refused."""
    clock = session.clock

    reasons: dict[str, str] = {}

    def sink(entry: RecordingEntry) -> None:
        if entry.kind == EntryKind.BLIND:
            reasons[entry.type] = msgspec.json.decode(entry.object, type=BlindWindow).reason
        try:
            session.recorder.emit(entry)
        except Exception as error:
            _log.exception("recording %s %s failed", entry.kind, entry.type)
            session.stop.report_crash(error)  # an entry that is lost without notice would be a wrong verdict
            raise

    for observer in observers:
        observer.start(sink)
    deadline = clock.now() + SYNC_SECONDS
    clock.settle()
    while late := [observer.name for observer in observers if not observer.has_synced()]:
        session.stop.check()
        if clock.now() > deadline:
            because = "; ".join(dict.fromkeys(reasons.values()))
            message = f"observers did not sync within {SYNC_SECONDS:g} s: {', '.join(late)}"
            raise Refused(f"{message}: {because}" if because else message)
        session.progress.tick(clock.now())
        clock.sleep(TICK / 4)


def _observe(session: RunSession) -> None:
    """Wait until every hypothesis is decided (each has a deadline), then take one more sample of the hosts."""
    clock = session.clock
    session.progress.phase("observe")
    while any(verdict.status is Status.PENDING for verdict in session.tick().hypothesis):
        clock.sleep(TICK)
    session.wait_until(clock.now() + 2 * PERIOD)


def _recover(session: RunSession) -> Interrupted | None:
    """Wait until the steady state holds again or its deadline passes. An early end affects only this verdict."""
    session.progress.phase("recovery")
    return _await_recovery(session)


def _await_recovery(session: RunSession) -> Interrupted | None:
    """Wait until every verdict on the recovery is decided."""
    try:
        while any(verdict.status is Status.PENDING for verdict in session.tick().recovery):
            session.clock.sleep(TICK)
    except (NodefallError, Interrupted) as error:
        _note_end(session, error)
        return error if isinstance(error, Interrupted) else None
    return None


def _note_end(session: RunSession, error: NodefallError | Interrupted) -> None:
    """Report why the run ends early. If someone stopped it, this is recorded, and verdicts that are decided stay
    decided.
    """
    if isinstance(error, Interrupted) or session.stop.reason:
        now = session.clock.now()
        session.recorder.emit(meta_entry(now, {INTERRUPTED_AT: now}))
    session.progress.note(error.message if isinstance(error, NodefallError) else f"stopping on {error}; undoing first")


def _result(
    session: RunSession,
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
        headline = f"{INTERRUPTED}{ended} before every verdict was decided"
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
        ended=session.clock.now(),
    )
