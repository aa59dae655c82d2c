"""Clock offset of a host, by which it starts a command at a given instant; measured while the command is armed."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from chaos.machines.transports.script import CLOCK_REQUEST, GO, parse_start_time

_MAX_SAMPLES = 12  # at most
CALIBRATION_TIMEOUT = 2.0  # seconds for all samples
_GOOD_WIDTH, _MAX_WIDTH = 0.002, 0.1  # seconds between the bounds: good enough, and too far apart
_ROUNDING = -0.0001  # seconds; timestamps are rounded, and clocks are slewed


class HostClock:
    """Bounds of a host's clock minus the local one, from the local times before a request and after its reply.

    ``can_report``: the host's shell can report its time and wait. If a clock is set meanwhile, the bounds contradict.
    """

    def __init__(self, can_report: bool) -> None:
        self._can_report = can_report
        self._lower, self._upper = -inf, inf
        self._late_replies = 0  # replies that did not arrive in time

    @property
    def is_known(self) -> bool:
        return _ROUNDING <= self._upper - self._lower <= _MAX_WIDTH

    def measure(
        self, now: Callable[[], float], send: Callable[[str], None], read_line: Callable[[], str | None]
    ) -> bool:
        """Take samples until the offset is known well; returns whether it is known."""
        for _ in range(_MAX_SAMPLES if self._can_report else 0):
            sent = now()
            send(CLOCK_REQUEST)
            self._late_replies += 1
            if (reply := read_line()) is None:
                return False
            self._late_replies -= 1
            if (host_time := parse_start_time(reply)) is None:
                return False
            self._lower, self._upper = max(self._lower, host_time - now()), min(self._upper, host_time - sent)
            if self._upper - self._lower < _GOOD_WIDTH:
                break
        return self.is_known

    def clock_argument(self, at: float | None) -> str:
        """Line that releases the command: at once, or at the local time ``at``."""
        if at is None or not self.is_known:
            return f"{GO}\n"
        return f"{GO} {round((at + (self._lower + self._upper) / 2) * 1e6)}\n"

    def read_start_time(self, read_line: Callable[[], str | None]) -> float | None:
        """Start time that the host reports, after the replies that arrived late."""
        for _ in range(self._late_replies):
            read_line()
        return parse_start_time(read_line() or "")
