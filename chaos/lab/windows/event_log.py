"""The System event log of one Windows machine, on disk. Texts as Windows writes them; Event IDs by source.

Records have the time of the machine's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

from chaos.lab.windows.clock import Now

EVENT_LOG = "EventLog"
USER32 = "User32"
KERNEL_GENERAL = "Microsoft-Windows-Kernel-General"
KERNEL_POWER = "Microsoft-Windows-Kernel-Power"
BUG_CHECK = "Microsoft-Windows-WER-SystemErrorReporting"
SCM = "Service Control Manager"
_BUG_CHECK_CODE = 0xD1  # of NotMyFault: DRIVER_IRQL_NOT_LESS_OR_EQUAL
CRITICAL, ERROR, WARNING, INFORMATION = 1, 2, 3, 4
_LEVELS = {  # of the events that are not information
    (KERNEL_POWER, 41): CRITICAL,
    (EVENT_LOG, 6008): ERROR,
    (BUG_CHECK, 1001): ERROR,
    (SCM, 7031): ERROR,
}


@dataclass(frozen=True, slots=True)
class EventRecord:
    """``data``: the values of EventData in order, for sources without names the first column is empty."""

    record_id: int
    t: float
    source: str
    event_id: int
    level: int
    message: str
    data: tuple[tuple[str, str], ...]


class EventLog:
    """Records of the log System, the oldest first."""

    def __init__(self, clock: Now, computer: str) -> None:
        self.computer = computer
        self.records: list[EventRecord] = []
        self._clock, self._numbers = clock, count(1)
        self.on_write: list[Callable[[EventRecord], None]] = []

    @property
    def now(self) -> float:
        """The time by the machine's clock."""
        return self._clock.now

    def write(self, source: str, event_id: int, message: str, *data: tuple[str, str]) -> None:
        """Append a record."""
        level = _LEVELS.get((source, event_id), INFORMATION)
        record = EventRecord(next(self._numbers), self._clock.now, source, event_id, level, message, data)
        self.records.append(record)
        for call in self.on_write:
            call(record)

    def log_shutdown_request(self, process: str, user: str, kind: str, reason: str, comment: str) -> None:
        """User32 1074: who asked for a shutdown, and why. ``kind``: restart or power off; ``reason`` with its code."""
        title, _, code = reason.partition("|")
        message = (
            f"The process {process} ({self.computer}) has initiated the {kind} of computer {self.computer} on behalf "
            f"of user {user} for the following reason: {title}  Reason Code: {code}  Shutdown Type: {kind}  "
            f"Comment: {comment}"
        )
        data = (process, self.computer, title, code, kind, comment, user)
        self.write(USER32, 1074, message, *((f"param{n}", text) for n, text in enumerate(data, 1)))

    def log_boot(self, *, clean: bool, bug_check: bool, stopped_at: float) -> None:
        """The events of a start; after an unclean stop also Kernel-Power 41 and EventLog 6008."""
        now = self._stamp(self._clock.now)
        self.write(KERNEL_GENERAL, 12, f"The operating system started at system time {now}.", ("StartTime", now))
        if not clean:
            self.write(
                KERNEL_POWER,
                41,
                "The system has rebooted without cleanly shutting down first. This error could be caused if the "
                "system stopped responding, crashed, or lost power unexpectedly.",
                ("BugcheckCode", str(_BUG_CHECK_CODE if bug_check else 0)),
            )
            when = datetime.fromtimestamp(stopped_at, UTC)
            time, date = when.strftime("%I:%M:%S %p").lstrip("0"), f"{when.month}/{when.day}/{when.year}"
            self.write(
                EVENT_LOG,
                6008,
                f"The previous system shutdown at {time} on {date} was unexpected.",
                ("", time),
                ("", date),
            )
        if bug_check:
            text = f"The computer has rebooted from a bugcheck. The bugcheck was: 0x{_BUG_CHECK_CODE:08x}."
            self.write(BUG_CHECK, 1001, text, ("param1", f"0x{_BUG_CHECK_CODE:08x}"))
        self.write(EVENT_LOG, 6009, "Microsoft (R) Windows (R) 10.00. 20348  Multiprocessor Free.")
        self.write(EVENT_LOG, 6005, "The Event log service was started.")

    def log_stop(self) -> None:
        """The last events before a clean stop."""
        now = self._stamp(self._clock.now)
        self.write(
            KERNEL_GENERAL, 13, f"The operating system is shutting down at system time {now}.", ("StopTime", now)
        )
        self.write(KERNEL_POWER, 109, "The kernel power manager has initiated a shutdown transition.")
        self.write(EVENT_LOG, 6006, "The Event log service was stopped.")

    def log_time_change(self, before: float, after: float) -> None:
        """Kernel-General 1: the clock was set."""
        new, old = self._stamp(after), self._stamp(before)
        data = (("NewTime", new), ("OldTime", old))
        self.write(KERNEL_GENERAL, 1, f"The system time has changed to {new} from {old}.", *data)

    @staticmethod
    def _stamp(t: float) -> str:
        return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
