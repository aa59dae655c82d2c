"""A schedule as the CronJobs of Kubernetes read it.

They use github.com/robfig/cron/v3, which knows neither ``#`` nor ``L``, and no 7 for Sunday.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from cronsim import CronSim

from chaos.gameday.starts import MAX_LATENESS
from chaos.gameday.time_rules import Schedule

_LAST_DAYS = {"L": "28-31", "LW": "26-31"}
_SAME_WEEKDAYS = re.compile(r"\*(/[0-9]+)?|[0-6A-Z,-]+")


def kubernetes_cron(cron: str) -> str:
    """Five fields whose times are all of ``cron``, and maybe more: ``gameday run --scheduled`` passes those over.

    ``TUE#1`` becomes every Tuesday, the last day of the month each of the last four.
    """
    minute, hour, day, month, weekday = cron.upper().split()
    days = ",".join(_LAST_DAYS.get(part, part) for part in day.split(","))
    if not _SAME_WEEKDAYS.fullmatch(weekday) or re.search(r"[0-9]L", weekday):
        found = CronSim(cron, datetime(2026, 1, 1, tzinfo=UTC)).weekdays
        numbers = {(each if isinstance(each, int) else each[0]) % 7 for each in found}
        weekday = ",".join(map(str, sorted(numbers)))
    return f"{minute} {hour} {days} {month} {weekday}"


def starting_deadline(schedule: Schedule) -> int:
    """Seconds after which Kubernetes gives up a start."""
    return int(MAX_LATENESS.total_seconds() if schedule.missed == "run" else max(schedule.grace, 10))
