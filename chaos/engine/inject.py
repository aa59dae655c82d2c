"""Injecting the method: arm, then fire; the journal before the deed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from chaos.engine.concurrency import MAX_THREADS, run_simultaneously
from chaos.engine.context import TICK, RunContext
from chaos.engine.failsafe import arm
from chaos.engine.recording_entries import action_entry
from chaos.model.action import ProofStatus
from chaos.model.command import NOT_SENT, Command, HostCommand, Outcome, PodsCommand, is_success
from chaos.model.errors import Aborted
from chaos.model.experiment import Moment, Step, parse_moment
from chaos.model.plan import PlannedStep
from chaos.model.ports import Armed

PROOF_SECONDS = 180.0  # after the last step, for proofs that are still missing
API_TIMEOUT = 30.0  # with an API server that does not answer when a step is due
START_LEAD = 0.12  # seconds from the writes that fire many hosts until all begin; less than the hosts wait at most
_GRACE = 0.5  # wall seconds in which most commands are answered, and in which one may still be when the run ends
_POLL = 0.25
R = TypeVar("R")


def inject(context: RunContext) -> None:
    """Every step at its time. Raises Aborted when a step could not be sent, Interrupted."""
    moments: dict[str, tuple[float, float]] = {}
    planned = {name: list(steps) for name, steps in groupby(context.plan.steps, key=lambda s: s.step)}
    previous = ""
    for step in context.experiment.spec.method:
        _fire_when_due(context, step, planned[step.name], moments, previous)
        previous = step.name


def _fire_when_due(
    context: RunContext, step: Step, group: list[PlannedStep], moments: dict[str, tuple[float, float]], previous: str
) -> None:
    due = _due_time(step, moments, previous, context.clock.now())
    if due > context.clock.now():
        context.wait_until(due)
    else:
        context.tick()
    _on_each(context, group, lambda planned: _check_preconditions(context, planned))
    _await_lock(context, group)
    context.record_intent([planned for planned in group if _has_preliminaries(planned)], context.clock.now())
    # Not earlier: a timer that heals the fault counts from now on.
    _on_each(context, group, lambda planned: _run_preliminaries(context, planned))
    with ExitStack() as stack:
        many = len(group) > 1
        ready = _on_each(context, group, lambda planned: _arm(context, planned, stack, tuned=many))
        context.stop.check()  # all of that took its time
        moments[step.name] = _fire_all(context, ready)


def _await_lock(context: RunContext, group: list[PlannedStep]) -> None:
    """Nothing that must be taken back is done before the API server has confirmed the lock and can keep the journal.

    Raises Aborted where it does not answer for too long.
    """
    if not any(planned.undo.proof for planned in group):
        context.guard.check()
        return
    deadline = context.clock.now() + API_TIMEOUT
    while not context.guard.renew():
        if context.clock.now() > deadline:
            raise Aborted(
                f"step {group[0].step} was not done: the API server has not answered for {API_TIMEOUT:g}s",
                hint="a step begins only while the lock can be confirmed and the journal be kept there too",
            )
        context.tick()
        context.clock.sleep(TICK)


@dataclass(frozen=True, slots=True)
class _ReadyStep:
    """A step on a node that only has to be fired; ``waiting`` on the host, None for what is sent when it is due.

    ``tuned``: it can begin at an instant that is agreed upon.
    """

    planned: PlannedStep
    armed_command: Armed | None
    armed_at: float
    is_calibrated: bool


def _fire_all(context: RunContext, ready: list[_ReadyStep]) -> tuple[float, float]:
    """Begin and return of the step."""
    begin = context.clock.now()
    context.progress.tick(begin)
    # Those with preliminaries have been journalled, with the same undo.
    context.record_intent([r.planned for r in ready if not _has_preliminaries(r.planned)], begin)
    for planned in (r.planned for r in ready):
        command = str(planned.commands[-1])
        context.emit(action_entry(begin, planned, "begin", command=command))
        context.progress.step(planned.step, planned.node, command)
    fired = context.clock.now()
    context.guard.check()
    at = (
        fired + START_LEAD if all(r.is_calibrated for r in ready) else None
    )  # one that cannot wait is not to be the first
    for waiting in (
        r.armed_command for r in ready if r.armed_command
    ):  # writes alone: a thread each would begin further apart
        waiting.release(at)
    group = [r.planned for r in ready]
    waits = any(isinstance(planned.commands[-1], PodsCommand) for planned in group)
    outcomes = run_simultaneously(
        ready, lambda r: _fire(context, r, fired), lambda going: _monitor(context, group, going, waits=waits)
    )
    context.emit_injected(group)
    _require_success(ready, outcomes)
    return begin, context.clock.now()


def _on_each(context: RunContext, group: Sequence[PlannedStep], do: Callable[[PlannedStep], R]) -> list[R]:
    """A thread each, in the order of ``group``; raises what the first raised, after the end of all."""
    with ThreadPoolExecutor(min(len(group), MAX_THREADS)) as pool:
        going = [pool.submit(do, planned) for planned in group]
        _monitor(context, group, going, optional=True)
    return [future.result() for future in going]


def _monitor(
    context: RunContext,
    group: Sequence[PlannedStep],
    going: Sequence[Future[Any]],
    *,
    waits: bool = False,
    optional: bool = False,
) -> None:
    """The run goes on while they are at work. Raises Interrupted or Aborted; a host that does not answer then is given
    up, as the undo must not wait for it. ``waits``: some wait in the cluster's time; else it goes no faster than ours,
    as an answer is slow in ours. ``optional``: what has not begun then need not.
    """
    wait(going, _GRACE)
    try:
        while wait(going, 0 if waits else _POLL).not_done:
            context.tick()
            context.clock.sleep(_POLL)
    except BaseException:
        context.clock.wake()  # what waits in the cluster's time gives up; roll back lets the clock sleep again
        wait([future for future in going if not (optional and future.cancel())], _GRACE)
        for planned, future in zip(group, going, strict=True):
            if not future.done():
                context.abandon(planned)
        raise


def _due_time(step: Step, moments: dict[str, tuple[float, float]], previous: str, now: float) -> float:
    """When the step is to begin: default is the return of the step before."""
    moment = parse_moment(step.after) if step.after else Moment(step="", is_end=True, offset=0.0)
    reference = moment.step or previous
    if not reference:
        return now + moment.offset
    begin, returned = moments[reference]
    return (returned if moment.is_end else begin) + moment.offset


def _check_preconditions(context: RunContext, planned: PlannedStep) -> None:
    for check in planned.preconditions:
        holds, seen = context.hosts.check(planned.node, check)
        if not holds:
            raise Aborted(f"step {planned.step} on {planned.node} was not done: it needs that {check}, but {seen}")


def _run_preliminaries(context: RunContext, planned: PlannedStep) -> None:
    """The timer that heals the fault, and what is sent ahead of it; the journal has it."""
    if planned.failsafe_timer:
        heal = planned.failsafe_timer
        seconds = arm(context.hosts, planned.node, heal, context.deadline - context.clock.now())
        context.progress.step(planned.step, planned.node, f"heals by itself in {seconds:.0f}s (timer {heal.unit})")
    for command in planned.commands[:-1]:
        outcome = context.hosts.send(planned.node, command)
        if not is_success(command, outcome):
            raise Aborted(f"step {planned.step} on {planned.node}: {command}: {_failure_reason(outcome)}")


def _has_preliminaries(planned: PlannedStep) -> bool:
    return len(planned.commands) > 1 or planned.failsafe_timer is not None


def _arm(context: RunContext, planned: PlannedStep, stack: ExitStack, *, tuned: bool) -> _ReadyStep:
    """A host command waits on its host for one write; ``stack`` gives it up."""
    command = planned.commands[-1]
    waiting = None
    if isinstance(command, HostCommand):
        waiting = context.hosts.session(planned.node).arm(command)
        stack.callback(waiting.cancel)
        tuned = tuned and waiting.calibrate(context.clock.now)
    return _ReadyStep(planned, waiting, context.clock.now(), tuned)


def _fire(context: RunContext, ready: _ReadyStep, fired: float) -> Outcome:
    planned = ready.planned
    command: Command = planned.commands[-1]
    outcome = ready.armed_command.wait() if ready.armed_command else context.hosts.send(planned.node, command)
    phases = {"armed": ready.armed_at, "fired": fired} if ready.armed_command else {"fired": fired}
    began = {} if outcome.began is None else {"began": outcome.began}
    context.emit(
        action_entry(
            context.clock.now(),
            planned,
            "returned",
            command=str(command),
            delivery=outcome.delivery,
            exit=outcome.exit,
            evidence=outcome.evidence | phases | began,
        )
    )
    return outcome


def _require_success(group: list[_ReadyStep], outcomes: list[Outcome]) -> None:
    """A command that was lost may have worked: its proof decides. One that was refused did not."""
    for planned, outcome in zip((r.planned for r in group), outcomes, strict=True):
        refused = outcome.delivery == NOT_SENT or (
            outcome.delivery == "answered" and not is_success(planned.commands[-1], outcome)
        )
        if refused:
            raise Aborted(f"step {planned.step} on {planned.node}: {planned.commands[-1]}: {_failure_reason(outcome)}")


def _failure_reason(outcome: Outcome) -> str:
    return outcome.error or outcome.stderr.strip() or f"exit code {outcome.exit}"


def await_proofs(context: RunContext) -> None:
    """Wait, within bounds, until every step is proven or disproven. Raises Interrupted or Aborted."""
    deadline = context.clock.now() + PROOF_SECONDS
    while context.clock.now() < deadline:
        result = context.tick()
        if all(step.proof_status is not ProofStatus.UNPROVEN for step in result.steps):
            return
        context.clock.sleep(1.0)
