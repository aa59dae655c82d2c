"""Injecting the method: arm, then fire; the journal before the deed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby

from chaos.engine.context import TICK, Context
from chaos.engine.lines import action_line
from chaos.engine.selfheal import plant
from chaos.engine.together import side_by_side, together
from chaos.model.action import Shown
from chaos.model.command import NOT_SENT, Command, HostCommand, Outcome, PodsCommand, succeeded
from chaos.model.errors import Aborted
from chaos.model.experiment import Moment, Step, parse_moment
from chaos.model.plan import PlannedStep
from chaos.model.ports import Armed

PROOF_SECONDS = 180.0  # after the last step, for proofs that are still missing
PATIENCE = 30.0  # with an API server that does not answer when a step is due
LEAD = 0.12  # seconds from the writes that fire many hosts until all begin; less than the hosts wait at most
_LOOK = 0.25


def inject(context: Context) -> None:
    """Every step at its time. Raises Aborted when a step could not be sent, Interrupted."""
    moments: dict[str, tuple[float, float]] = {}
    planned = {name: list(steps) for name, steps in groupby(context.plan.steps, key=lambda s: s.step)}
    previous = ""
    for step in context.experiment.spec.method:
        _fire_when_due(context, step, planned[step.name], moments, previous)
        previous = step.name


def _fire_when_due(
    context: Context, step: Step, group: list[PlannedStep], moments: dict[str, tuple[float, float]], previous: str
) -> None:
    due = _due(step, moments, previous, context.clock.now())
    if due > context.clock.now():
        context.wait_until(due)
    else:
        context.tick()
    side_by_side(group, lambda planned: _must_hold(context, planned), context.clock)
    _await_guard(context, group)
    context.owe([planned for planned in group if _has_preliminaries(planned)], context.clock.now())
    # Not earlier: a timer that heals the fault counts from now on.
    side_by_side(group, lambda planned: _preliminaries(context, planned), context.clock)
    with ExitStack() as stack:
        many = len(group) > 1
        ready = side_by_side(group, lambda planned: _arm(context, planned, stack, tuned=many), context.clock)
        context.stop.check()  # all of that took its time
        moments[step.name] = _fire_all(context, ready)


def _await_guard(context: Context, group: list[PlannedStep]) -> None:
    """Nothing that must be taken back is done before the API server has confirmed the lock and can keep the journal.

    Raises Aborted where it does not answer for too long.
    """
    if not any(planned.undo.proof for planned in group):
        context.guard.check()
        return
    deadline = context.clock.now() + PATIENCE
    while not context.guard.renew():
        if context.clock.now() > deadline:
            raise Aborted(
                f"step {group[0].step} was not done: the API server has not answered for {PATIENCE:g}s",
                hint="a step begins only while the lock can be confirmed and the journal be kept there too",
            )
        context.tick()
        context.clock.sleep(TICK)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A step on a node that only has to be fired; ``waiting`` on the host, None for what is sent when it is due.

    ``tuned``: it can begin at an instant that is agreed upon.
    """

    planned: PlannedStep
    waiting: Armed | None
    armed: float
    tuned: bool


def _fire_all(context: Context, ready: list[_Ready]) -> tuple[float, float]:
    """Begin and return of the step."""
    begin = context.clock.now()
    context.progress.tick(begin)
    # Those with preliminaries have been journalled, with the same undo.
    context.owe([r.planned for r in ready if not _has_preliminaries(r.planned)], begin)
    for planned in (r.planned for r in ready):
        command = str(planned.commands[-1])
        context.emit(action_line(begin, planned, "begin", command=command))
        context.progress.step(planned.step, planned.node, command)
    waits = any(isinstance(r.planned.commands[-1], PodsCommand) for r in ready)
    fired = context.clock.now()
    context.guard.check()
    at = fired + LEAD if all(r.tuned for r in ready) else None  # one that cannot wait is not to be the first
    for waiting in (r.waiting for r in ready if r.waiting):  # writes alone: a thread each would begin further apart
        waiting.go(at)
    look_on = (lambda going: _look_on(context, going)) if waits else None
    outcomes = together(ready, lambda r: _fire(context, r, fired), look_on)
    context.tell_injected([r.planned for r in ready])
    _check(ready, outcomes)
    return begin, context.clock.now()


def _look_on(context: Context, fired: Sequence[Future[Outcome]]) -> None:
    """What waits in the cluster's time does so while the run goes on. Raises Interrupted or Aborted."""
    try:
        while not all(future.done() for future in fired):
            context.tick()
            context.clock.sleep(_LOOK)
    except BaseException:
        context.clock.wake()  # it gives up; roll back lets the clock sleep again
        raise


def _due(step: Step, moments: dict[str, tuple[float, float]], previous: str, now: float) -> float:
    """When the step is to begin: default is the return of the step before."""
    moment = parse_moment(step.after) if step.after else Moment(step="", returned=True, offset=0.0)
    reference = moment.step or previous
    if not reference:
        return now + moment.offset
    begin, returned = moments[reference]
    return (returned if moment.returned else begin) + moment.offset


def _must_hold(context: Context, planned: PlannedStep) -> None:
    for check in planned.before:
        holds, seen = context.hosts.holds(planned.node, check)
        if not holds:
            raise Aborted(f"step {planned.step} on {planned.node} was not done: it needs that {check}, but {seen}")


def _preliminaries(context: Context, planned: PlannedStep) -> None:
    """The timer that heals the fault, and what is sent ahead of it; the journal has it."""
    if planned.self_heal:
        heal = planned.self_heal
        seconds = plant(context.hosts, planned.node, heal, context.deadline - context.clock.now())
        context.progress.step(planned.step, planned.node, f"heals by itself in {seconds:.0f}s (timer {heal.unit})")
    for command in planned.commands[:-1]:
        outcome = context.hosts.send(planned.node, command)
        if not succeeded(command, outcome):
            raise Aborted(f"step {planned.step} on {planned.node}: {command}: {_why(outcome)}")


def _has_preliminaries(planned: PlannedStep) -> bool:
    return len(planned.commands) > 1 or planned.self_heal is not None


def _arm(context: Context, planned: PlannedStep, stack: ExitStack, *, tuned: bool) -> _Ready:
    """A host command waits on its host for one write; ``stack`` gives it up."""
    command = planned.commands[-1]
    waiting = None
    if isinstance(command, HostCommand):
        waiting = context.hosts.session(planned.node).arm(command)
        stack.callback(waiting.cancel)
        tuned = tuned and waiting.tune(context.clock.now)
    return _Ready(planned, waiting, context.clock.now(), tuned)


def _fire(context: Context, ready: _Ready, fired: float) -> Outcome:
    planned = ready.planned
    command: Command = planned.commands[-1]
    outcome = ready.waiting.fire() if ready.waiting else context.hosts.send(planned.node, command)
    phases = {"armed": ready.armed, "fired": fired} if ready.waiting else {"fired": fired}
    began = {} if outcome.began is None else {"began": outcome.began}
    context.emit(
        action_line(
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


def _check(group: list[_Ready], outcomes: list[Outcome]) -> None:
    """A command that was lost may have worked: its proof decides. One that was refused did not."""
    for planned, outcome in zip((r.planned for r in group), outcomes, strict=True):
        refused = outcome.delivery == NOT_SENT or (
            outcome.delivery == "answered" and not succeeded(planned.commands[-1], outcome)
        )
        if refused:
            raise Aborted(f"step {planned.step} on {planned.node}: {planned.commands[-1]}: {_why(outcome)}")


def _why(outcome: Outcome) -> str:
    return outcome.error or outcome.stderr.strip() or f"exit code {outcome.exit}"


def await_proofs(context: Context) -> None:
    """Wait, within bounds, until every step is proven or disproven. Raises Interrupted or Aborted."""
    deadline = context.clock.now() + PROOF_SECONDS
    while context.clock.now() < deadline:
        result = context.tick()
        if all(step.shown is not Shown.NOT_SHOWN for step in result.steps):
            return
        context.clock.sleep(1.0)
