"""Every change of a day's state. Each returns a new state, which is stored before what it permits is done.

A transition whose answer was lost may be repeated: it changes nothing the second time. Times are seconds since 1970.
Those that belong to the work on the day take the ``epoch`` of the holder, and raise StateConflict for a former one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from chaos.core.errors import Refused
from chaos.core.redaction import redact
from chaos.gameday.events import Undelivered
from chaos.gameday.state import (
    Approval,
    DayRun,
    DayState,
    DayStatus,
    Halt,
    PastWait,
    RunKey,
    RunStatus,
    Verdict,
    Waiting,
    startable,
)

MAX_ATTEMPTS = 5  # begins of a run that dies each time before its fault
MAX_HALTS = 20
MAX_APPROVALS = 50
MAX_UNDELIVERED = 50
MAX_WAITS = 100
MAX_EARLIER_REASONS = 4  # of one wait
_MAX_REASON, _MAX_PERSON = 200, 100  # bytes


class StateConflict(Refused):
    """The state does not permit the change: someone else has changed it, or the order is wrong."""


def take_over(state: DayState, holder: str) -> DayState:
    """A new holder, after the former one was proven dead or has let go: its later changes are refused."""
    return replace(state, holder=shorten(holder, _MAX_PERSON), epoch=state.epoch + 1)


def begin(state: DayState, key: RunKey, run: str, epoch: int, now: float) -> DayState:
    """The run begins under the ID ``run``: it may plan, check and apply its workload, but not yet inject a fault."""
    check_epoch(state, epoch)
    current = _find(state, key)
    if current.status is RunStatus.RUNNING and current.run == run:
        return state
    if any(each.run == run for each in state.runs):
        raise StateConflict(f"cannot begin {key}: the run ID {run} is in use")
    if key not in startable(state):
        raise StateConflict(f"cannot begin {key}: {_why_not(state, current)}")
    attempts = current.attempts + 1
    return _put(state, replace(current, status=RunStatus.RUNNING, run=run, attempts=attempts, begun=now))


def before_fault(state: DayState, key: RunKey, run: str, epoch: int) -> DayState:
    """From now on the run may inject its fault. It never begins again after this."""
    check_epoch(state, epoch)
    current = _running(state, key, run)
    if state.halt:
        raise StateConflict(f"cannot continue {key}: {_describe_halt(state.halt)}")
    return _put(state, replace(current, may_have_injected=True))


def finish(
    state: DayState, key: RunKey, run: str, verdict: Verdict, epoch: int, now: float, reason: str = ""
) -> DayState:
    """The run has ended, and its undo is finished. After a violation that stops the day the rest is skipped."""
    check_epoch(state, epoch)
    current = _find(state, key)
    if current.status is RunStatus.DONE and (current.run, current.verdict) == (run, verdict):
        return state
    current = _running(state, key, run)
    done = replace(current, status=RunStatus.DONE, verdict=verdict, reason=shorten(reason, _MAX_REASON), ended=now)
    state = _put(state, done)
    if verdict != "violated" or done.on_violated == "continue":
        return state
    return _skip_pending(state, f"stopped: {key} was violated", now)


def recover(
    state: DayState, key: RunKey, verdict: Verdict | None, epoch: int, now: float, *, without_fault: bool = False
) -> DayState:
    """A run of a former holder that is still running by the state, after its undo is finished.

    Without a fault, by the state or as its journal proves (``without_fault``), it is pending again, with the same seed,
    whatever its result says of an early end. Otherwise it is done, with ``verdict`` if it got as far as that, else
    interrupted: it never begins a second time.
    """
    check_epoch(state, epoch)
    current = _find(state, key)
    if current.status is not RunStatus.RUNNING:
        return state
    if current.may_have_injected and not without_fault:
        reason = "" if verdict else "its process ended before its verdict"
        return finish(state, key, current.run, verdict or "interrupted", epoch, now, reason)
    clean = replace(current, run="", may_have_injected=False)
    if current.attempts >= MAX_ATTEMPTS:
        reason = f"interrupted {MAX_ATTEMPTS} times before its fault"
        return _put(state, replace(clean, status=RunStatus.SKIPPED, reason=reason, ended=now))
    return _put(state, replace(clean, status=RunStatus.PENDING, begun=None))


def give_back(state: DayState, key: RunKey, run: str, epoch: int) -> DayState:
    """The run stops by itself before its fault, as it is interrupted or refused: it is pending again.

    One that was skipped in the same write stays so.
    """
    check_epoch(state, epoch)
    current = _find(state, key)
    if current.status in (RunStatus.PENDING, RunStatus.SKIPPED):
        return state
    current = _running(state, key, run)
    if current.may_have_injected:
        raise StateConflict(f"cannot give back {key}: its fault may have been injected")
    back = replace(current, status=RunStatus.PENDING, run="", begun=None, attempts=current.attempts - 1)
    return _put(state, back)


def skip(state: DayState, key: RunKey, reason: str, epoch: int, now: float) -> DayState:
    """The run does not take place, as a gate did not hold or the window closes."""
    check_epoch(state, epoch)
    current = _find(state, key)
    if current.status is RunStatus.SKIPPED:
        return state
    if current.status is not RunStatus.PENDING:
        raise StateConflict(f"cannot skip {key}: it is {current.status}")
    skipped = replace(current, status=RunStatus.SKIPPED, reason=shorten(reason, _MAX_REASON), ended=now)
    return _put(state, skipped)


def skip_rest(state: DayState, reason: str, epoch: int, now: float) -> DayState:
    """Nothing more begins on this day; runs that are running end."""
    check_epoch(state, epoch)
    return _skip_pending(state, reason, now)


def halt(state: DayState, by: str, reason: str, now: float) -> DayState:
    """Nothing more begins, until someone resumes the day. Anyone may do it, at any time, whoever holds the day."""
    if state.status is DayStatus.FINISHED:
        raise StateConflict(f"cannot halt {state.day}: it is finished")
    if state.halt:
        return state
    halted = Halt(shorten(by, _MAX_PERSON), now, shorten(reason, _MAX_REASON))
    return replace(state, halts=(*state.halts, halted)[-MAX_HALTS:])


def end(state: DayState, by: str, reason: str, now: float) -> DayState:
    """Halt the day for good: what has not begun never does."""
    if state.status is DayStatus.FINISHED:
        return state
    why = f"ended by {shorten(by, _MAX_PERSON)}" + (f": {reason}" if reason else "")
    return _skip_pending(halt(state, by, reason, now), why, now)


def resume(state: DayState, by: str, reason: str, now: float) -> DayState:
    """Let a halted day continue."""
    if state.halt is None:
        return state
    if not by.strip() or not reason.strip():
        missing = "who resumes it" if not by.strip() else "why"
        raise StateConflict(f"cannot resume {state.day}: {missing} is missing")
    resumed = replace(
        state.halt,
        resumed_by=shorten(by, _MAX_PERSON),
        resumed_at=now,
        resumed_because=shorten(reason, _MAX_REASON),
    )
    return replace(state, halts=(*state.halts[:-1], resumed))


def pass_gates(state: DayState, key: RunKey, epoch: int, now: float) -> DayState:
    """All gates of the run hold."""
    check_epoch(state, epoch)
    return _put(state, replace(_find(state, key), gates_held=now))


def wait_for(state: DayState, waiting: Waiting | None, epoch: int, now: float) -> DayState:
    """Store what the day waits for; None once it no longer waits, as of ``now``. What it waited for before is kept."""
    check_epoch(state, epoch)
    before = state.waiting
    if waiting is None:
        return replace(state, waiting=None, waits=_past_waits(state, now))
    short = replace(waiting, reason=shorten(waiting.reason, _MAX_REASON))
    if before is None or (before.what, before.since) != (short.what, short.since):
        return replace(state, waiting=short, waits=_past_waits(state, None))
    return replace(state, waiting=replace(short, earlier=_earlier_reasons(before, short.reason)))


def _past_waits(state: DayState, ended: float | None) -> tuple[PastWait, ...]:
    """The waits that are over, with the present one."""
    if state.waiting is None:
        return state.waits
    reasons = (*state.waiting.earlier, state.waiting.reason)
    past = PastWait(state.waiting.what, reasons, state.waiting.since, ended)
    return (*state.waits, past)[-MAX_WAITS:]


def _earlier_reasons(before: Waiting, reason: str) -> tuple[str, ...]:
    """Reasons before this one: the first ones, as one with a number in it may change at each look."""
    known = before.earlier if before.reason in (*before.earlier, reason) else (*before.earlier, before.reason)
    return tuple(each for each in known if each != reason)[:MAX_EARLIER_REASONS]


def record_undelivered(state: DayState, undelivered: Sequence[Undelivered], epoch: int) -> DayState:
    """Add notifications that did not reach their receiver; the latest are kept."""
    check_epoch(state, epoch)
    new = [
        replace(each, receiver=shorten(each.receiver, _MAX_REASON), reason=shorten(each.reason, _MAX_REASON))
        for each in undelivered
    ]
    added = [each for each in new if each not in state.undelivered]
    return replace(state, undelivered=(*state.undelivered, *added)[-MAX_UNDELIVERED:])


def approve(state: DayState, approval: Approval) -> DayState:
    """Add an approval, whose plan must be that of the day. Raises Refused."""
    if approval.plan_hash != state.plan_hash:
        raise Refused(
            f"approval of another plan: {approval.plan_hash[:12]}; the plan of {state.day} is {state.plan_hash[:12]}",
            hint="read nodefall gameday plan again, and approve the hash that it prints",
        )
    approval = replace(approval, by=shorten(approval.by, _MAX_PERSON), via=shorten(approval.via, _MAX_PERSON))
    if not approval.by.strip():
        raise Refused("approval without a name", hint="name the person who approves")
    if approval.entry and not any(run.key.entry == approval.entry for run in state.runs):
        raise Refused(f"approval of an unknown entry: {state.day} has no {approval.entry!r}")
    same = (approval.by, approval.entry, approval.plan_hash)
    if any((each.by, each.entry, each.plan_hash) == same for each in state.approvals):
        return state
    if len(state.approvals) >= MAX_APPROVALS:
        raise Refused(f"too many approvals of {state.day}: {MAX_APPROVALS} are stored")
    return replace(state, approvals=(*state.approvals, approval))


def shorten(text: str, max_bytes: int) -> str:
    """``text`` without secrets and control characters, in at most ``max_bytes`` of UTF-8."""
    plain = "".join(char if char.isprintable() else " " for char in redact(text))
    data = plain.encode("utf-8", "replace")
    return plain if len(data) <= max_bytes else data[: max_bytes - 3].decode("utf-8", "ignore") + "..."


def check_epoch(state: DayState, epoch: int) -> None:
    """Raises StateConflict if another process has taken the day over since ``epoch``."""
    if epoch != state.epoch:
        raise StateConflict(
            f"{state.day} was taken over by {state.holder}",
            hint="only one process works on a game day; see nodefall gameday status",
        )


def _find(state: DayState, key: RunKey) -> DayRun:
    run = state.find(key)
    if run is None:
        raise StateConflict(f"{state.day} has no run {key}")
    return run


def _running(state: DayState, key: RunKey, run: str) -> DayRun:
    current = _find(state, key)
    if current.status is not RunStatus.RUNNING or current.run != run:
        raise StateConflict(f"{key} is {current.status}" + (f" as {current.run}" if current.run else ""))
    return current


def _why_not(state: DayState, run: DayRun) -> str:
    if state.halt:
        return _describe_halt(state.halt)
    if run.status is not RunStatus.PENDING:
        return f"it is {run.status}" + (f" as {run.run}" if run.run else "")
    return "others come first"


def _describe_halt(halted: Halt) -> str:
    return f"halted by {halted.by}" + (f": {halted.reason}" if halted.reason else "")


def _put(state: DayState, run: DayRun) -> DayState:
    return _map(state, lambda each: run if each.key == run.key else each)


def _skip_pending(state: DayState, reason: str, now: float) -> DayState:
    changes: dict[str, Any] = {"status": RunStatus.SKIPPED, "reason": shorten(reason, _MAX_REASON), "ended": now}
    return _map(state, lambda run: replace(run, **changes) if run.status is RunStatus.PENDING else run)


def _map(state: DayState, change: Callable[[DayRun], DayRun]) -> DayState:
    return replace(state, runs=tuple(map(change, state.runs)))
