"""Injecting the method: arm, then fire; the journal before the deed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from chaos.engine.context import TICK, Context
from chaos.engine.lines import action_line
from chaos.engine.selfheal import plant
from chaos.engine.together import MANY, together
from chaos.model.action import Shown
from chaos.model.command import NOT_SENT, Command, HostCommand, Outcome, PodsCommand, succeeded
from chaos.model.errors import Aborted
from chaos.model.experiment import Moment, Step, parse_moment
from chaos.model.plan import PlannedStep
from chaos.model.ports import Armed

PROOF_SECONDS = 180.0  # after the last step, for proofs that are still missing
PATIENCE = 30.0  # with an API server that does not answer when a step is due
LEAD = 0.12  # seconds from the writes that fire many hosts until all begin; less than the hosts wait at most
_SOON = 0.5  # wall seconds in which most commands are answered, and in which one may still be when the run ends
_LOOK = 0.25
R = TypeVar("R")


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
    _on_each(context, group, lambda planned: _must_hold(context, planned))
    _await_guard(context, group)
    context.owe([planned for planned in group if _has_preliminaries(planned)], context.clock.now())
    # Not earlier: a timer that heals the fault counts from now on.
    _on_each(context, group, lambda planned: _preliminaries(context, planned))
    with ExitStack() as stack:
        many = len(group) > 1
        ready = _on_each(context, group, lambda planned: _arm(context, planned, stack, tuned=many))
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
    fired = context.clock.now()
    context.guard.check()
    at = fired + LEAD if all(r.tuned for r in ready) else None  # one that cannot wait is not to be the first
    for waiting in (r.waiting for r in ready if r.waiting):  # writes alone: a thread each would begin further apart
        waiting.go(at)
    group = [r.planned for r in ready]
    waits = any(isinstance(planned.commands[-1], PodsCommand) for planned in group)
    outcomes = together(
        ready, lambda r: _fire(context, r, fired), lambda going: _look_on(context, group, going, waits=waits)
    )
    context.tell_injected(group)
    _check(ready, outcomes)
    return begin, context.clock.now()


def _on_each(context: Context, group: Sequence[PlannedStep], do: Callable[[PlannedStep], R]) -> list[R]:
    """A thread each, in the order of ``group``; raises what the first raised, after the end of all."""
    with ThreadPoolExecutor(min(len(group), MANY)) as pool:
        going = [pool.submit(do, planned) for planned in group]
        _look_on(context, group, going, optional=True)
    return [future.result() for future in going]


def _look_on(
    context: Context,
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
    wait(going, _SOON)
    try:
        while wait(going, 0 if waits else _LOOK).not_done:
            context.tick()
            context.clock.sleep(_LOOK)
    except BaseException:
        context.clock.wake()  # what waits in the cluster's time gives up; roll back lets the clock sleep again
        wait([future for future in going if not (optional and future.cancel())], _SOON)
        for planned, future in zip(group, going, strict=True):
            if not future.done():
                context.give_up(planned)
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
