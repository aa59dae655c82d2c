"""What a day waits for before a run: the pause after the last one, and its window. Reasons are printed and stored."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from chaos.app.day.session import DaySession
from chaos.cluster.cluster_state import list_nodes
from chaos.core.duration import format_duration, parse_duration
from chaos.core.errors import Aborted, NodefallError
from chaos.core.kube import Node, is_ready
from chaos.core.ports import KubeApi
from chaos.engine.waits import taints_of
from chaos.gameday.document import Pause
from chaos.gameday.estimates import experiment_duration
from chaos.gameday.state import MAX_IMPAIRED, DayRun, RunStatus, Waiting
from chaos.gameday.transitions import StateConflict, skip, skip_rest, wait_for

_REMIND_SECONDS = 600.0  # between two lines about the same wait
_MAX_SLEEP = 60.0  # a machine may have been suspended meanwhile
_TICK = 1.0  # between two judgements of the abort conditions
_log = logging.getLogger(__name__)
_POLL = 5.0  # seconds
_SHOWN = 3  # nodes in one reason


@dataclass(frozen=True, slots=True)
class Wait:
    """``what`` the day waits for. ``check`` returns why it must wait, or "".

    ``deadline``: when it gives up; ``expected``: when the wait ends, if that is known. ``poll``: seconds between two
    checks. Times in cluster time, as seconds since the epoch.
    """

    what: str
    check: Callable[[], str]
    poll: float
    deadline: float | None = None
    expected: float | None = None


def wait_until(session: DaySession, wait: Wait) -> str:
    """Wait until the check returns "": that, or its last reason if the deadline is over.

    Raises DayHalted, Interrupted, Aborted, and StateConflict for a day that another process has taken over.
    """
    session.stop.check()
    reason = _check(wait)
    if not reason:
        return ""
    since = session.now()
    announced = _announce(session, wait, reason, since)
    with session.connection.clock.participant():
        while reason and (wait.deadline is None or session.now() < wait.deadline):
            _sleep(session, wait)
            latest = _check(wait)
            if latest and (latest != reason or session.now() - announced >= _REMIND_SECONDS):
                announced = _announce(session, wait, latest, since)
            reason = latest
    waited = format_duration(round(session.now() - since, 1))
    session.note(f"gave up waiting for {wait.what} after {waited}" if reason else f"waited {waited} for {wait.what}")
    _store(session, None)
    return reason


def _sleep(session: DaySession, wait: Wait) -> None:
    """Sleep until the next check, and look at the abort conditions meanwhile."""
    now = session.now()
    ends = [end for end in (wait.deadline, wait.expected) if end is not None and end > now]
    end = min([now + wait.poll, *ends])
    while True:
        session.stop.check()
        session.check_abort()
        left = end - session.now()
        if left <= 0:
            return
        session.connection.clock.sleep(min(left, _TICK if session.has_abort else _MAX_SLEEP))


def _check(wait: Wait) -> str:
    try:
        return wait.check()
    except (StateConflict, Aborted):
        raise
    except NodefallError as error:
        return error.message  # unknown, as when the API server does not answer


def _announce(session: DaySession, wait: Wait, reason: str, since: float) -> float:
    """Print and store why the day waits; the present time."""
    until = wait.deadline if wait.deadline is not None else wait.expected
    end = "" if until is None else session.describe(datetime.fromtimestamp(until, UTC))
    bound = f", {'at most ' if wait.deadline is not None else ''}until {end}" if end else ""
    session.note(f"waiting for {wait.what}{bound}: {reason}")
    _store(session, Waiting(wait.what, reason, since, until))
    return session.now()


def _store(session: DaySession, waiting: Waiting | None) -> None:
    """Best effort: a wait continues while the API server does not answer."""
    try:
        session.update(partial(wait_for, waiting=waiting, epoch=session.epoch, now=session.now()), patience=0.0)
    except StateConflict:
        raise
    except NodefallError as error:
        _log.debug("the wait was not stored: %s", error.message)
        with suppress(NodefallError):
            session.stop.check()


def await_window(session: DaySession, run: DayRun) -> bool:
    """Wait until the run fits before the window closes; a run that never does is skipped. Whether it may begin."""
    entry = session.entries[run.key.entry]
    seconds = experiment_duration(entry.loaded.experiment).expected
    fit = session.calendar.next_fit(session.moment(), seconds)
    if fit is None:
        why = f"the window is never open for {format_duration(seconds)} in the next ten years"
        session.note(f"skipping {run.key}: {why}")
        session.update(lambda state: skip(state, run.key, why, session.epoch, session.now()))
        return False
    check = partial(_closed, session, seconds)
    wait_until(session, Wait(f"the window for {run.key}", check, poll=60.0, expected=fit.timestamp()))
    return True


def _closed(session: DaySession, seconds: float) -> str:
    """Why a run of so many seconds must not begin now, or ""."""
    calendar, moment = session.calendar, session.moment()
    if calendar.fits(moment, seconds):
        return ""
    if why := calendar.closed_because(moment):
        return f"it is closed: {why}"
    closes = calendar.closes(moment)
    end = session.describe(closes) if closes else ""
    return f"it closes at {end}, and the run is expected to take {format_duration(seconds)}"


def await_pause(session: DaySession) -> None:
    """Wait for the pause after the last run. Without recovery, the rest of the day is skipped."""
    previous = _previous(session)
    if previous is None or previous.ended is None:
        return
    pause = session.entries[previous.key.entry].entry.pause or session.request.day.document.spec.pause
    end = previous.ended + parse_duration(pause.at_least)
    wait_until(session, Wait("the pause", partial(_remaining, session, pause, end), _POLL, expected=end))
    if pause.recovery is None:
        return
    deadline = session.now() + parse_duration(pause.recovery)
    what = f"the recovery after {previous.key}"
    reason = wait_until(session, Wait(what, partial(_unrecovered, session), _POLL, deadline))
    if reason:
        why = f"the cluster has not recovered within {pause.recovery} after {previous.key}: {reason}"
        session.note(f"stopping the day: {why}")
        session.update(lambda state: skip_rest(state, why, session.epoch, session.now()))


def impaired_nodes(kube: KubeApi) -> dict[str, str]:
    """What is wrong with the nodes that are not as they should be, by name. Raises NodefallError."""
    return {node.metadata.name: why for node in list_nodes(kube) if (why := impairment(node))}


def names_of_impaired(kube: KubeApi) -> tuple[str, ...]:
    """Names of the nodes that no pause waits for, as they were impaired before the day. Raises NodefallError."""
    return tuple(sorted(impaired_nodes(kube)))[:MAX_IMPAIRED]


def impairment(node: Node) -> str:
    """What a fault may have left behind on a node: it is not Ready, cordoned or tainted; otherwise ""."""
    if not is_ready(node):
        return "is not Ready"
    if node.spec and node.spec.unschedulable:
        return "is cordoned"
    taints = sorted(taints_of(node))
    return f"has the taint {taints[0]}" if taints else ""


def _previous(session: DaySession) -> DayRun | None:
    """The run that ended last."""
    done = [each for each in session.state.runs if each.status is RunStatus.DONE and each.ended is not None]
    return max(done, key=lambda each: each.ended or 0.0, default=None)


def _remaining(session: DaySession, pause: Pause, end: float) -> str:
    return f"at least {pause.at_least} between two runs" if session.now() < end else ""


def _unrecovered(session: DaySession) -> str:
    found = impaired_nodes(session.connection.kube)
    waiting = [f"{node} {why}" for node, why in sorted(found.items()) if node not in session.state.impaired]
    more = f" and {len(waiting) - _SHOWN} more" if len(waiting) > _SHOWN else ""
    return ", ".join(waiting[:_SHOWN]) + more
