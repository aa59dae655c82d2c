"""Restarts of Windows: how it stopped, whether it boots by itself after a crash, and what waits for a restart."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.core.command import HostCommand
from chaos.core.fact import host_fact
from chaos.core.windows import powershell
from chaos.faults.readings.windows._events import (
    EVENT_LOG,
    EVENTS,
    KERNEL_GENERAL,
    KERNEL_POWER,
    SystemEvent,
    parse_events,
    query_events,
)
from chaos.faults.readings.windows._registry import VALUE, parse_number, query_value

CLEAN, UNCLEAN, BUG_CHECK, UNKNOWN = "clean", "unclean", "bug-check", "unknown"
_STARTED, _NOT_CLEAN, _UNEXPECTED = (KERNEL_GENERAL, 12), (KERNEL_POWER, 41), (EVENT_LOG, 6008)
_STOPPING, _LOG_STOPPED = (KERNEL_GENERAL, 13), (EVENT_LOG, 6006)
_EVENTS = (_STARTED, _NOT_CLEAN, _UNEXPECTED, _STOPPING, _LOG_STOPPED)
_COUNT = 8  # of one boot and the stop before it there are four at most


@host_fact(
    "last-stop",
    "how the machine stopped before it booted: clean, unclean, bug-check or unknown",
    query_events(_EVENTS, _COUNT),
    form=EVENTS,
)
def last_stop(stdout: str, exit_code: int) -> str:
    """Text: clean, unclean (the power was lost, or it hung), bug-check (the kernel crashed) or unknown.

    Unknown after the first boot, and where the log was cleared or the events have been overwritten.
    """
    events = parse_events(stdout, exit_code)
    boot = next((index for index, event in enumerate(events) if event.key == _STARTED), None)
    return UNKNOWN if boot is None else _stop_before(events[:boot], events[boot + 1 :])


def _stop_before(after: Sequence[SystemEvent], before: Sequence[SystemEvent]) -> str:
    """By the events after the last start, the newest first, and those before it."""
    crash = next((event for event in after if event.key == _NOT_CLEAN), None)
    if crash is not None and crash.value("BugcheckCode") not in ("", "0"):
        return BUG_CHECK
    if crash is not None or any(event.key == _UNEXPECTED for event in after):
        return UNCLEAN
    if before and before[0].key in (_STOPPING, _LOG_STOPPED):
        return CLEAN
    return UNKNOWN


@host_fact(
    "crash-auto-reboot",
    "whether the machine boots again by itself after a bug check",
    query_value(r"HKLM\SYSTEM\CurrentControlSet\Control\CrashControl", "AutoReboot"),
    form=VALUE,
)
def crash_auto_reboot(stdout: str, exit_code: int) -> bool:
    """True or false: AutoReboot of CrashControl."""
    return parse_number(stdout, exit_code, "AutoReboot") != 0


_PENDING_MARKS = {"PackagesPending", "RebootInProgress", "RebootPending", "RebootRequired"}


@host_fact(
    "pending-reboot",
    "marks of updates that wait for a restart, which then takes minutes longer",
    HostCommand(powershell("read-pending-reboot")),
)
def pending_reboot(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of the marks that are there.

    Of servicing: PackagesPending, RebootInProgress, RebootPending; of Windows Update: RebootRequired.
    """
    rows = dict(line.split() for line in stdout.splitlines() if len(line.split()) == 2)
    if exit_code or rows.keys() != _PENDING_MARKS or not set(rows.values()) <= {"True", "False"}:
        raise ValueError("the keys of pending updates were not read")
    return sorted(name for name, there in rows.items() if there == "True")
