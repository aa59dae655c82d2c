"""Work queue of a controller: a key that was added several times is handled once, a few milliseconds later."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from chaos.lab.sim.clock import SimClock, Timer

_Key = TypeVar("_Key", bound=Hashable)


class WorkQueue(Generic[_Key]):
    """Calls ``handle`` with each key after a random delay between ``low`` and ``high`` seconds."""

    def __init__(self, sim: SimClock, handle: Callable[[_Key], None], low: float = 0.005, high: float = 0.02) -> None:
        self._sim, self._handle, self._low, self._high = sim, handle, low, high
        self._timers: dict[_Key, Timer] = {}

    def add(self, key: _Key, extra_delay: float = 0.0) -> None:
        """Add a key. ``extra_delay`` in seconds, for a breakage."""
        known, sim, low = self._timers.get(key), self._sim, self._low
        if known is None:
            delay = low + (self._high - low) * sim.rng.random() + extra_delay
            self._timers[key] = sim.at(sim.now + delay, self._run, key)
        elif known.due > sim.now + low:
            self.add_after(key, low + (self._high - low) * sim.rng.random() + extra_delay)

    def add_after(self, key: _Key, delay: float) -> None:
        """Add a key to be handled after ``delay`` seconds, unless it is due earlier."""
        known = self._timers.get(key)
        if known is not None:
            if known.due <= self._sim.now + delay:
                return
            known.cancel()
        self._timers[key] = self._sim.after(delay, self._run, key)

    def _run(self, key: _Key) -> None:
        del self._timers[key]
        self._handle(key)
