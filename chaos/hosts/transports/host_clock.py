"""Many hosts begin at one instant: each waits for it by its own clock, which is measured while it waits to be fired."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from chaos.hosts.transports.script import CLOCK_REQUEST, GO, parse_start_time

_MAX_SAMPLES = 12  # times at most
CALIBRATION_TIMEOUT = 2.0  # seconds for all that
_GOOD_WIDTH, _MAX_WIDTH = 0.002, 0.1  # seconds between the bounds: good enough, and not good enough
_ROUNDING = -0.0001  # times are rounded, and clocks are slewed


class HostClock:
    """How far the clock of a host is ahead of ours: bounds, from when we asked for its time and when we knew it.

    ``tells``: its shell can tell the time and wait. A clock that was put meanwhile leaves no room between the bounds.
    """

    def __init__(self, can_report: bool) -> None:
        self._can_report = can_report
        self._lower, self._upper = -inf, inf
        self._late_replies = 0  # answers that did not come in time

    @property
    def is_known(self) -> bool:
        return _ROUNDING <= self._upper - self._lower <= _MAX_WIDTH

    def measure(self, now: Callable[[], float], ask: Callable[[str], None], line: Callable[[], str | None]) -> bool:
        """Ask until it is known well; whether it is known."""
        for _ in range(_MAX_SAMPLES if self._can_report else 0):
            asked = now()
            ask(CLOCK_REQUEST)
            self._late_replies += 1
            if (said := line()) is None:
                return False
            self._late_replies -= 1
            if (told := parse_start_time(said)) is None:
                return False
            self._lower, self._upper = max(self._lower, told - now()), min(self._upper, told - asked)
            if self._upper - self._lower < _GOOD_WIDTH:
                break
        return self.is_known

    def clock_argument(self, at: float | None) -> str:
        """What fires it: at once, or when it is ``at`` there, of our time."""
        if at is None or not self.is_known:
            return f"{GO}\n"
        return f"{GO} {round((at + (self._lower + self._upper) / 2) * 1e6)}\n"

    def read_start_time(self, line: Callable[[], str | None]) -> float | None:
        """When the host says that it began, behind the answers that came too late."""
        for _ in range(self._late_replies):
            line()
        return parse_start_time(line() or "")
