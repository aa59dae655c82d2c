"""Inject the method: write the journal entry, arm the step, then fire it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
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
    failure_reason,
    had_no_effect,
    is_success,
    undecided_answer,
)
from chaos.core.errors import Aborted
from chaos.core.experiment import Step, moment_of
from chaos.core.plan import PlannedStep
from chaos.core.ports import Armed
from chaos.core.recording import FAILSAFE, ActionPhase
from chaos.engine.failsafe import arm
from chaos.engine.recorder import action_entry
from chaos.engine.session import TICK, RunSession
from chaos.engine.waits import await_any
from chaos.machines.concurrency import MAX_THREADS, await_briefly, run_simultaneously

PROOF_SECONDS = 180.0  # after the last step, for proofs that are still missing
API_TIMEOUT = 30.0  # seconds that a due step waits for an API server that does not respond
START_LEAD = 0.12  # seconds from the writes that release many hosts to their common start; a host waits longer at most
_GRACE = 0.5  # seconds in which most commands respond; also granted to pending ones when the run ends
_POLL = 0.25
_log = logging.getLogger(__name__)
R = TypeVar("R")
Moments = dict[str, tuple[float, float]]  # begin and return of each step


def inject(session: RunSession) -> None:
    """Fire every step at its time. Raises Aborted if a step fails or is not sent, and Interrupted on a signal."""
    moments: Moments = {}
    planned = {name: list(steps) for name, steps in groupby(session.plan.steps, key=lambda s: s.step)}
    previous = ""
    for step in session.experiment.spec.method:
        _fire_when_due(session, step, planned[step.name], moments, previous)
        previous = step.name


def _fire_when_due(session: RunSession, step: Step, group: list[PlannedStep], moments: Moments, previous: str) -> None:
    clock = session.clock
    due = _due_time(step, moments, previous, clock.now())
    if due > clock.now():
        session.wait_until(due)
    else:
        session.tick()
    await_any(session, group, partial(_on_each, session))
    _on_each(session, group, lambda planned: _check_preconditions(session, planned))
    _await_lock(session, group)
    session.record_intent([planned for planned in group if _has_preliminaries(planned)], clock.now())
    session.lock.check()  # the journal took time
    # Not earlier: the failsafe timer counts from now on.
    timers = _on_each(session, group, lambda planned: _run_preliminaries(session, planned))
    fires_at = {planned.node: at for planned, at in zip(group, timers, strict=True)}
    with ExitStack() as stack:
        many = len(group) > 1
        ready = _on_each(session, group, lambda planned: _arm(session, planned, stack, calibrate=many))
        session.limits.check(group)
        session.stop.check()  # arming took time
        moments[step.name] = _fire_all(session, ready, fires_at)


def _await_lock(session: RunSession, group: list[PlannedStep]) -> None:
    """Renew the lock. If the steps have an undo to journal, wait until the API server has confirmed the renewal.

    Raises Aborted when the API server does not respond for ``API_TIMEOUT`` seconds.
    """
    guard, clock = session.lock, session.clock
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
        session.tick()
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


def _fire_all(
    session: RunSession, ready: list[_ReadyStep], fires_at: Mapping[str, float | None]
) -> tuple[float, float]:
    """Fire the step on all nodes; returns its start and return times. ``fires_at``: of the failsafe timer, by node."""
    intended = session.clock.now()
    session.progress.tick(intended)
    # Steps with preliminaries are in the journal already, with the same undo.
    session.record_intent([r.planned for r in ready if not _has_preliminaries(r.planned)], intended)
    if not session.lock.renew():  # arming and the journal took time
        session.lock.check()
    session.stop.check()
    begin = session.clock.now()  # not earlier: with a slow API server, the above takes longer than what is judged
    for planned in (r.planned for r in ready):
        command = str(planned.commands[-1])
        session.recorder.emit(action_entry(begin, planned, ActionPhase.BEGIN, command=command))
        session.progress.step(planned.step, planned.node, command)
    with session.observers.watch_closely():
        session.lock.check()
        fired = session.clock.now()  # not earlier: the check may wait for a slow API server
        is_calibrated = all(r.is_calibrated for r in ready)
        at = fired + START_LEAD if is_calibrated else None  # else an uncalibrated one would be first
        for armed in (r.armed_command for r in ready if r.armed_command):
            armed.release(at)  # in this thread: a thread per write would spread the starts
        group = [r.planned for r in ready]
        uses_cluster_time = any(isinstance(planned.commands[-1], PodsCommand) for planned in group)
        outcomes = run_simultaneously(
            ready,
            lambda r: _fire(session, r, fired, fires_at[r.planned.node]),
            lambda futures: _monitor(session, group, futures, uses_cluster_time=uses_cluster_time),
            session.clock.threads,
        )
    session.emit_injected(group)
    _require_success(session, group, outcomes)
    return begin, session.clock.now()


def _on_each(session: RunSession, group: Sequence[PlannedStep], do: Callable[[PlannedStep], R]) -> list[R]:
    """Call ``do`` for each step in its own thread; the results are in the order of ``group``.

    After all have ended, raises the first exception in that order.
    """
    with session.clock.threads.pool(min(len(group), MAX_THREADS)) as pool:
        futures = [pool.submit(do, planned) for planned in group]
        _monitor(session, group, futures, cancel_queued=True)
    return [future.result() for future in futures]


def _monitor(
    session: RunSession,
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
    clock = session.clock
    wait = clock.threads.wait
    await_briefly(futures, clock, _GRACE)
    try:
        while not wait(futures, 0 if uses_cluster_time else _POLL):
            session.tick()
            clock.sleep(_POLL)
            clock.settle()
    except BaseException:
        clock.wake()  # ends waits in cluster time; rollback lets the clock sleep again
        wait([future for future in futures if not (cancel_queued and future.cancel())], _GRACE)
        for planned, future in zip(group, futures, strict=True):
            if not future.done():
                session.abandon(planned)
        raise


def _due_time(step: Step, moments: Moments, previous: str, now: float) -> float:
    """When the step must begin; by default, when the previous step returns."""
    moment = moment_of(step)
    reference = moment.step or previous
    if not reference:
        return now + moment.offset
    begin, returned = moments[reference]
    return (returned if moment.is_end else begin) + moment.offset


def _check_preconditions(session: RunSession, planned: PlannedStep) -> None:
    """Raises Aborted if a precondition of the step does not hold."""
    for check in planned.preconditions:
        holds, observed = session.hosts.check(planned.node, check)
        if not holds:
            raise Aborted(f"step {planned.step} on {planned.node} was not done: it requires {check}, but {observed}")


def _run_preliminaries(session: RunSession, planned: PlannedStep) -> float | None:
    """Arm the failsafe timer and send the commands that precede the fault. The journal already has the entry of the
    step. Returns the earliest moment at which the timer fires, or None without a timer.
    """
    fires_at = None
    if planned.failsafe_timer:
        timer, armed_after = planned.failsafe_timer, session.clock.now()
        seconds = arm(session.hosts, planned.node, timer, session.deadline - session.clock.now())
        fires_at = armed_after + seconds
        session.progress.step(planned.step, planned.node, f"failsafe timer {timer.unit} fires in {seconds:.0f} s")
    for command in planned.commands[:-1]:
        outcome = session.hosts.send(planned.node, command)
        if not is_success(command, outcome):
            raise Aborted(f"step {planned.step} on {planned.node}: {command}: {failure_reason(command, outcome)}")
    return fires_at


def _has_preliminaries(planned: PlannedStep) -> bool:
    return len(planned.commands) > 1 or planned.failsafe_timer is not None


def _arm(session: RunSession, planned: PlannedStep, stack: ExitStack, *, calibrate: bool) -> _ReadyStep:
    """Arm a host command: it waits on its host until it is released. ``stack`` cancels it."""
    command = planned.commands[-1]
    now = session.clock.now
    if not isinstance(command, HostCommand):
        return _ReadyStep(planned, None, now(), is_calibrated=calibrate)
    armed_command = session.hosts.session(planned.node).arm(command)
    stack.callback(armed_command.cancel)
    is_calibrated = calibrate and armed_command.calibrate(now)
    return _ReadyStep(planned, armed_command, now(), is_calibrated)


def _fire(session: RunSession, ready: _ReadyStep, fired: float, fires_at: float | None) -> Outcome:
    """Run the command to its end and record its outcome."""
    planned = ready.planned
    command: Command = planned.commands[-1]
    outcome = ready.armed_command.wait() if ready.armed_command else session.hosts.send(planned.node, command)
    if ready.armed_command:
        _log.debug("%s: %s: %s, exit %s %s", planned.node, command, outcome.delivery, outcome.exit, outcome.error)
    phases = {"armed": ready.armed_at, "fired": fired} if ready.armed_command else {"fired": fired}
    began = {} if outcome.began is None else {"began": outcome.began}
    timer = {} if fires_at is None else {FAILSAFE: fires_at}
    undecided = undecided_answer(command, outcome)
    stderr = {"stderr": undecided} if undecided else {}
    session.recorder.emit(
        action_entry(
            session.clock.now(),
            planned,
            ActionPhase.RETURNED,
            command=str(command),
            delivery=outcome.delivery,
            exit=outcome.exit,
            evidence=outcome.evidence | phases | began | timer | stderr,
        )
    )
    return outcome


def _require_success(session: RunSession, group: Sequence[PlannedStep], outcomes: Sequence[Outcome]) -> None:
    """Raises Aborted if a command failed or was not sent. If it may have worked, its proof decides."""
    errors: list[str] = []
    for planned, outcome in zip(group, outcomes, strict=True):
        command = planned.commands[-1]
        if undecided_answer(command, outcome):
            continue
        if outcome.delivery is Delivery.NOT_SENT or (
            outcome.delivery is Delivery.ANSWERED and not is_success(command, outcome)
        ):
            why = f"{command}: {failure_reason(command, outcome)}"
            errors.append(f"step {planned.step} on {planned.node}: {why}")
            if had_no_effect(command, outcome) and not _has_preliminaries(planned):
                session.withdraw_intent(planned, why)
    if errors:
        raise Aborted(errors[0])


def await_proofs(session: RunSession) -> None:
    """Wait until every step is proven or disproven, at most ``PROOF_SECONDS``. Raises Interrupted or Aborted."""
    clock = session.clock
    deadline = clock.now() + PROOF_SECONDS
    while clock.now() < deadline:
        result = session.tick()
        if all(step.proof_status is not ProofStatus.UNPROVEN for step in result.steps):
            return
        clock.sleep(1.0)
