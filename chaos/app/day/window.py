"""Waiting until the window is open for long enough."""

from __future__ import annotations

from functools import partial

from chaos.app.day.session import DaySession
from chaos.app.day.waits import Wait, wait_until
from chaos.core.duration import format_duration
from chaos.gameday.estimates import experiment_duration
from chaos.gameday.state import DayRun
from chaos.gameday.transitions import skip


def await_window(session: DaySession, run: DayRun) -> bool:
    """Wait until the run fits before the window closes; a run that never does is skipped. Whether it may begin."""
    entry = session.entries[run.key.entry]
    seconds = experiment_duration(entry.loaded.experiment).expected
    fit = session.calendar.next_fit(session.moment(), seconds)
    if fit is None:
        why = f"no opening of the window in the next ten years is {format_duration(seconds)} long"
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
