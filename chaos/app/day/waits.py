"""Waiting for something with a reason that is printed and stored, until a deadline or the end of the day's work."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from chaos.app.day.session import DaySession
from chaos.core.duration import format_duration
from chaos.core.errors import Aborted, NodefallError
from chaos.gameday.state import Waiting
from chaos.gameday.transitions import StateConflict, wait_for

_REMIND_SECONDS = 600.0  # between two lines about the same wait
_MAX_SLEEP = 60.0  # a machine may have been suspended meanwhile
_TICK = 1.0  # between two judgements of the abort conditions
_log = logging.getLogger(__name__)


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
    """Best effort: a wait goes on while the API server does not answer."""
    try:
        session.update(partial(wait_for, waiting=waiting, epoch=session.epoch, now=session.now()), patience=0.0)
    except StateConflict:
        raise
    except NodefallError as error:
        _log.debug("the wait was not stored: %s", error.message)
        with suppress(NodefallError):
            session.stop.check()
