"""The System event log of one Windows machine, on disk: events of shutdowns and boots, with the values of their texts.

Records have the time of the machine's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from chaos.lab.windows.clock import Now

EVENT_LOG = "EventLog"
USER32 = "User32"
KERNEL_GENERAL = "Microsoft-Windows-Kernel-General"
KERNEL_POWER = "Microsoft-Windows-Kernel-Power"
_BUG_CHECK_CODE = 0xD1  # of NotMyFault: DRIVER_IRQL_NOT_LESS_OR_EQUAL
_LEVELS = {41: 1, 6008: 2}  # critical, and error; the other events are information
_INFORMATION = 4


@dataclass(frozen=True, slots=True)
class EventRecord:
    """``data``: the values of EventData in order, for sources without names the first column is empty."""

    record_id: int
    t: float
    source: str
    event_id: int
    data: tuple[tuple[str, str], ...]

    @property
    def level(self) -> int:
        """Severity."""
        return _LEVELS.get(self.event_id, _INFORMATION)


class EventLog:
    """Records of the log System, the oldest first."""

    def __init__(self, clock: Now, computer: str) -> None:
        self.records: list[EventRecord] = []
        self._clock, self._computer, self._count = clock, computer, 0

    @property
    def now(self) -> float:
        """The time by the machine's clock."""
        return self._clock.now

    def write(self, source: str, event_id: int, *data: tuple[str, str]) -> None:
        """Append a record."""
        self._count += 1
        self.records.append(EventRecord(self._count, self._clock.now, source, event_id, data))

    def log_shutdown_request(self, process: str, user: str, kind: str, reason: str, comment: str) -> None:
        """User32 1074: who asked for a shutdown, and why. ``kind``: restart or power off; ``reason`` with its code."""
        title, _, code = reason.partition("|")
        data = (process, self._computer, title, code, kind, comment, user)
        self.write(USER32, 1074, *((f"param{n}", text) for n, text in enumerate(data, 1)))

    def log_boot(self, *, clean: bool, bug_check: bool, stopped_at: float) -> None:
        """The events of a start; after an unclean stop also Kernel-Power 41 and EventLog 6008."""
        self.write(KERNEL_GENERAL, 12, ("StartTime", stamp(self._clock.now)))
        if not clean:
            self.write(KERNEL_POWER, 41, ("BugcheckCode", str(_BUG_CHECK_CODE if bug_check else 0)))
            when = datetime.fromtimestamp(stopped_at, UTC)
            time, date = when.strftime("%I:%M:%S %p").lstrip("0"), f"{when.month}/{when.day}/{when.year}"
            self.write(EVENT_LOG, 6008, ("", time), ("", date))

    def log_stop(self) -> None:
        """The last events before a clean stop."""
        self.write(KERNEL_GENERAL, 13, ("StopTime", stamp(self._clock.now)))
        self.write(EVENT_LOG, 6006)


def stamp(t: float) -> str:
    """A time as events have it."""
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
