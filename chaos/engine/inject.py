"""Inject the method: arm, then fire; the journal entry before the operation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from chaos.core.action import ProofStatus
from chaos.core.command import (
    Command,
    Delivery,
    HostCommand,
    Outcome,
    PodsCommand,
    is_success,
    refusal,
    undecided_answer,
)
from chaos.core.errors import Aborted
from chaos.core.experiment import Step, moment_of
from chaos.core.plan import PlannedStep
from chaos.core.ports import Armed
from chaos.core.recording import ActionPhase
from chaos.engine.await_checks import await_any
from chaos.engine.context import TICK, RunContext
from chaos.engine.failsafe import arm
from chaos.engine.recording_entries import action_entry
from chaos.engine.rejection import had_no_effect
from chaos.machines.concurrency import MAX_THREADS, await_briefly, run_simultaneously

PROOF_SECONDS = 180.0  # after the last step, for proofs that are still missing
API_TIMEOUT = 30.0  # seconds that a due step waits for an API server that does not respond
START_LEAD = 0.12  # seconds from the writes that release many hosts to their common start; a host waits longer at most
_GRACE = 0.5  # seconds in which most commands respond; also granted to pending ones when the run ends
_POLL = 0.25
_SHOWN_OUTPUT = 200  # characters of a failed program's output
_log = logging.getLogger(__name__)
R = TypeVar("R")
Moments = dict[str, tuple[float, float]]  # begin and return of each step


def inject(context: RunContext) -> None:
    """Fire every step at its time. Raises Aborted when a step fails or is not sent, and Interrupted."""
    moments: Moments = {}
    planned = {name: list(steps) for name, steps in groupby(context.inputs.plan.steps, key=lambda s: s.step)}
    previous = ""
    for step in context.inputs.experiment.spec.method:
        _fire_when_due(context, step, planned[step.name], moments, previous)
        previous = step.name


def _fire_when_due(context: RunContext, step: Step, group: list[PlannedStep], moments: Moments, previous: str) -> None:
    clock = context.services.clock
    due = _due_time(step, moments, previous, clock.now())
    if due > clock.now():
        context.wait_until(due)
    else:
        context.tick()
    await_any(context, group, partial(_on_each, context))
    _on_each(context, group, lambda planned: _check_preconditions(context, planned))
    _await_lock(context, group)
    context.record_intent([planned for planned in group if _has_preliminaries(planned)], clock.now())
    context.services.guard.check()  # the journal took time
    # Not earlier: the failsafe timer counts from now on.
    _on_each(context, group, lambda planned: _run_preliminaries(context, planned))
    with ExitStack() as stack:
        many = len(group) > 1
        ready = _on_each(context, group, lambda planned: _arm(context, planned, stack, calibrate=many))
        context.services.check_limits(group)
        context.stop.check()  # arming took time
        moments[step.name] = _fire_all(context, ready)


def _await_lock(context: RunContext, group: list[PlannedStep]) -> None:
    """Renew the lock; wait until the API server has confirmed that, if the steps have an undo to journal there.

    Raises Aborted when the API server does not respond for ``API_TIMEOUT`` seconds.
    """
    guard, clock = context.services.guard, context.services.clock
    if not any(planned.undo.proof for planned in group):
        if not guard.renew():
            guard.check()
        return
    deadline = clock.now() + API_TIMEOUT
    while not guard.renew():
        if clock.now() > deadline:
            raise Aborted(
                f"step {group[0].step} was not done: the API server has not answered for {API_TIMEOUT:g} s",
                hint="check the API server: a step begins only while it can confirm the lock and store the journal",
            )
        context.tick()
        clock.sleep(TICK)


@dataclass(frozen=True, slots=True)
class _ReadyStep:
    """A step on a node, ready to fire. ``armed_command`` waits on the host; None: the command is sent when it is due.

    ``is_calibrated``: the command can begin at an instant that several hosts share.
    """

    planned: PlannedStep
    armed_command: Armed | None
    armed_at: float
    is_calibrated: bool


def _fire_all(context: RunContext, ready: list[_ReadyStep]) -> tuple[float, float]:
    """Fire the step on all nodes; the times of its begin and return."""
    services = context.services
    intended = services.clock.now()
    services.progress.tick(intended)
    # Steps with preliminaries are in the journal already, with the same undo.
    context.record_intent([r.planned for r in ready if not _has_preliminaries(r.planned)], intended)
    if not services.guard.renew():  # arming and the journal took time
        services.guard.check()
    context.stop.check()
    begin = services.clock.now()  # not earlier: with a slow API server, the above takes longer than what is judged
    for planned in (r.planned for r in ready):
        command = str(planned.commands[-1])
        services.emit(action_entry(begin, planned, ActionPhase.BEGIN, command=command))
        services.progress.step(planned.step, planned.node, command)
    with services.watch_closely():
        services.guard.check()
        fired = services.clock.now()  # not earlier: the check may wait for a slow API server
        is_calibrated = all(r.is_calibrated for r in ready)
        at = fired + START_LEAD if is_calibrated else None  # else an uncalibrated one would be first
        for armed in (r.armed_command for r in ready if r.armed_command):
            armed.release(at)  # in this thread: a thread per write would spread the starts
        group = [r.planned for r in ready]
        uses_cluster_time = any(isinstance(planned.commands[-1], PodsCommand) for planned in group)
        outcomes = run_simultaneously(
            ready,
            lambda r: _fire(context, r, fired),
            lambda futures: _monitor(context, group, futures, uses_cluster_time=uses_cluster_time),
            services.clock.threads,
        )
    context.emit_injected(group)
    _require_success(context, group, outcomes)
    return begin, services.clock.now()


def _on_each(context: RunContext, group: Sequence[PlannedStep], do: Callable[[PlannedStep], R]) -> list[R]:
    """``do`` of each step in a thread each, in the order of ``group``.

    After all have ended, raises what the first in order raised.
    """
    with context.services.clock.threads.pool(min(len(group), MAX_THREADS)) as pool:
        futures = [pool.submit(do, planned) for planned in group]
        _monitor(context, group, futures, cancel_queued=True)
    return [future.result() for future in futures]


def _monitor(
    context: RunContext,
    group: Sequence[PlannedStep],
    futures: Sequence[Future[Any]],
    *,
    uses_cluster_time: bool = False,
    cancel_queued: bool = False,
) -> None:
    """Tick until ``futures`` are done. On Interrupted or Aborted, abandon the hosts that have not responded, and raise.

    The undo must not wait for them. ``uses_cluster_time``: some wait in cluster time, so it must go on at full speed;
    otherwise it goes no faster than wall time, in which hosts respond. ``cancel_queued``: on an abort, cancel what has
    not begun.
    """
    clock = context.services.clock
    wait = clock.threads.wait
    await_briefly(futures, clock, _GRACE)
    try:
        while not wait(futures, 0 if uses_cluster_time else _POLL):
            context.tick()
            clock.sleep(_POLL)
            clock.settle()
    except BaseException:
        clock.wake()  # ends waits in cluster time; rollback lets the clock sleep again
        wait([future for future in futures if not (cancel_queued and future.cancel())], _GRACE)
        for planned, future in zip(group, futures, strict=True):
            if not future.done():
                context.abandon(planned)
        raise


def _due_time(step: Step, moments: Moments, previous: str, now: float) -> float:
    """When the step is to begin; the default is the return of the step before it."""
    moment = moment_of(step)
    reference = moment.step or previous
    if not reference:
        return now + moment.offset
    begin, returned = moments[reference]
    return (returned if moment.is_end else begin) + moment.offset


def _check_preconditions(context: RunContext, planned: PlannedStep) -> None:
    """Raises Aborted if a precondition of the step does not hold."""
    for check in planned.preconditions:
        holds, observed = context.services.hosts.check(planned.node, check)
        if not holds:
            raise Aborted(f"step {planned.step} on {planned.node} was not done: it requires {check}, but {observed}")


def _run_preliminaries(context: RunContext, planned: PlannedStep) -> None:
    """Arm the failsafe timer and send the commands that precede the fault; the journal has the step's entry."""
    services = context.services
    if planned.failsafe_timer:
        timer = planned.failsafe_timer
        seconds = arm(services.hosts, planned.node, timer, context.inputs.deadline - services.clock.now())
        services.progress.step(planned.step, planned.node, f"failsafe timer {timer.unit} fires in {seconds:.0f} s")
    for command in planned.commands[:-1]:
        outcome = services.hosts.send(planned.node, command)
        if not is_success(command, outcome):
            raise Aborted(f"step {planned.step} on {planned.node}: {command}: {_failure_reason(command, outcome)}")


def _has_preliminaries(planned: PlannedStep) -> bool:
    return len(planned.commands) > 1 or planned.failsafe_timer is not None


def _arm(context: RunContext, planned: PlannedStep, stack: ExitStack, *, calibrate: bool) -> _ReadyStep:
    """Let a host command wait on its host for one write; ``stack`` cancels it."""
    command = planned.commands[-1]
    now = context.services.clock.now
    if not isinstance(command, HostCommand):
        return _ReadyStep(planned, None, now(), is_calibrated=calibrate)
    armed_command = context.services.hosts.session(planned.node).arm(command)
    stack.callback(armed_command.cancel)
    is_calibrated = calibrate and armed_command.calibrate(now)
    return _ReadyStep(planned, armed_command, now(), is_calibrated)


def _fire(context: RunContext, ready: _ReadyStep, fired: float) -> Outcome:
    """Run the command to its end and record its outcome."""
    services, planned = context.services, ready.planned
    command: Command = planned.commands[-1]
    outcome = ready.armed_command.wait() if ready.armed_command else services.hosts.send(planned.node, command)
    if ready.armed_command:
        _log.debug("%s: %s: %s, exit %s %s", planned.node, command, outcome.delivery, outcome.exit, outcome.error)
    phases = {"armed": ready.armed_at, "fired": fired} if ready.armed_command else {"fired": fired}
    began = {} if outcome.began is None else {"began": outcome.began}
    undecided = undecided_answer(command, outcome)
    stderr = {"stderr": undecided} if undecided else {}
    services.emit(
        action_entry(
            services.clock.now(),
            planned,
            ActionPhase.RETURNED,
            command=str(command),
            delivery=outcome.delivery,
            exit=outcome.exit,
            evidence=outcome.evidence | phases | began | stderr,
        )
    )
    return outcome


def _require_success(context: RunContext, group: Sequence[PlannedStep], outcomes: Sequence[Outcome]) -> None:
    """Raises Aborted if a command failed or was not sent. One that may have worked is left to its proof."""
    errors: list[str] = []
    for planned, outcome in zip(group, outcomes, strict=True):
        command = planned.commands[-1]
        if undecided_answer(command, outcome):
            continue
        if outcome.delivery is Delivery.NOT_SENT or (
            outcome.delivery is Delivery.ANSWERED and not is_success(command, outcome)
        ):
            why = f"{command}: {_failure_reason(command, outcome)}"
            errors.append(f"step {planned.step} on {planned.node}: {why}")
            if had_no_effect(command, outcome) and not _has_preliminaries(planned):
                context.withdraw_intent(planned, why)
    if errors:
        raise Aborted(errors[0])


def _failure_reason(command: Command, outcome: Outcome) -> str:
    """Programs of Windows write their errors to standard output."""
    code = f"exit code {outcome.exit}"
    shown = " ".join(outcome.stdout.split())[:_SHOWN_OUTPUT]
    reason = refusal(command, outcome) or outcome.error or outcome.stderr.strip()
    return reason or (f"{code}: {shown}" if shown else code)


def await_proofs(context: RunContext) -> None:
    """Wait until every step is proven or disproven, ``PROOF_SECONDS`` at most. Raises Interrupted or Aborted."""
    clock = context.services.clock
    deadline = clock.now() + PROOF_SECONDS
    while clock.now() < deadline:
        result = context.tick()
        if all(step.proof_status is not ProofStatus.UNPROVEN for step in result.steps):
            return
        clock.sleep(1.0)
