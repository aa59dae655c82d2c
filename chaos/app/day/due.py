"""Whether a day that is started by a schedule is to be begun."""

from __future__ import annotations

from datetime import UTC, datetime

from chaos.app.gameday import LoadedGameDay
from chaos.core.errors import Refused
from chaos.gameday.calendar import Calendar
from chaos.gameday.schedule import why_not_due
from chaos.gameday.state import DayState, DayStatus


def is_under_way(stored: DayState | None) -> bool:
    """Whether there is a day that has begun, and is not finished."""
    return stored is not None and stored.status is not DayStatus.FINISHED and stored.has_begun


def refuse_unless_due(day: LoadedGameDay, stored: DayState | None, fresh: DayState) -> None:
    """Raises Refused if a day with a schedule is not under way, and no start is due when ``fresh`` was created."""
    spec = day.document.spec
    if spec.schedule is None or is_under_way(stored) or (stored is not None and stored.day == fresh.day):
        return
    last = datetime.fromtimestamp(_begin_of(stored), UTC) if stored and stored.status is DayStatus.FINISHED else None
    now = datetime.fromtimestamp(fresh.created, UTC)
    if reason := why_not_due(spec.schedule, Calendar(spec.window), last, now):
        raise Refused(f"game day {day.document.metadata.name} does not begin: {reason}")


def _begin_of(finished: DayState) -> float:
    """When the first run began or was skipped: an approval may have created the day long before its start."""
    times = [run.begun if run.begun is not None else run.ended for run in finished.runs]
    return max(finished.created, min((t for t in times if t is not None), default=finished.created))
