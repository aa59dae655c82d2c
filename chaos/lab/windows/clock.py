"""Clock of one Windows machine: wall clock time, and the services that set it back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from chaos.lab.sim.clock import SimClock, Timer


class Now(Protocol):
    """What has a present time in seconds since the epoch."""

    @property
    def now(self) -> float: ...


class MachineClock:
    """``offset``: seconds by which the clock is ahead of simulated time; it persists over a boot, as in the RTC.

    ``on_change``: called with the time before and after a change.
    """

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self.offset = 0.0
        self.on_change: list[Callable[[float, float], None]] = []

    @property
    def now(self) -> float:
        return self._sim.now + self.offset

    def adjust(self, seconds: float) -> None:
        """Set the clock ahead, or back for a negative number."""
        before = self.now
        self.offset += seconds
        for call in list(self.on_change):
            call(before, self.now)

    def correct(self) -> None:
        """Set the clock right."""
        if self.offset:
            self.adjust(-self.offset)


class TimeSync:
    """Sets the clock right some time after it was set wrong, while one of ``services`` runs.

    ``services``: seconds by name of a service. ``is_running``: whether the service of that name runs.
    """

    def __init__(
        self, sim: SimClock, clock: MachineClock, services: Mapping[str, float], is_running: Callable[[str], bool]
    ) -> None:
        self._sim, self._clock, self._services, self._is_running = sim, clock, services, is_running
        self._timers: dict[str, Timer] = {}
        clock.on_change.append(lambda *_: self.check())

    def check(self) -> None:
        """Start the wait of every service that runs, and end that of every other, after a change of either."""
        for name, seconds in self._services.items():
            is_due = self._clock.offset != 0 and self._is_running(name)
            if is_due and name not in self._timers:
                self._timers[name] = self._sim.after(seconds, self._correct, name)
            elif not is_due and (timer := self._timers.pop(name, None)) is not None:
                timer.cancel()

    def _correct(self, name: str) -> None:
        self._timers.pop(name, None)
        self._clock.correct()
