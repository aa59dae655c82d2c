"""How the machine stopped before its present boot."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.facts.windows._events import (
    EVENT_LOG,
    KERNEL_GENERAL,
    KERNEL_POWER,
    SystemEvent,
    parse_events,
    query_events,
)
from chaos.model.fact import HostFact

CLEAN, UNCLEAN, BUG_CHECK, UNKNOWN = "clean", "unclean", "bug-check", "unknown"
_STARTED, _NOT_CLEAN, _UNEXPECTED = (KERNEL_GENERAL, 12), (KERNEL_POWER, 41), (EVENT_LOG, 6008)
_STOPPING, _LOG_STOPPED = (KERNEL_GENERAL, 13), (EVENT_LOG, 6006)
_EVENTS = (_STARTED, _NOT_CLEAN, _UNEXPECTED, _STOPPING, _LOG_STOPPED)
_COUNT = 8  # of one boot and the stop before it there are four at most


class LastStop(HostFact):
    """Text: clean, unclean (the power was lost, or it hung), bug-check (the kernel crashed) or unknown.

    Unknown after the first boot, and where the log was cleared or the events have been overwritten.
    """

    name = "last-stop"
    summary = "how the machine stopped before it booted: clean, unclean, bug-check or unknown"
    command = query_events(_EVENTS, _COUNT)

    def parse(self, stdout: str, exit_code: int) -> str:
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


FACT = LastStop()
