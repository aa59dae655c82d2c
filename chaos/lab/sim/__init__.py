"""Simulated time: a queue of timers, one thread, one seed. The same seed and calls give the same history."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import count
from math import modf
from typing import Any

_SLOTS = 64  # per simulated second


def rfc3339(when: float) -> str:
    """Format epoch seconds as metav1.Time: whole seconds, UTC."""
    return _format(int(when))


@lru_cache(maxsize=1024)
def _format(when: int) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(timestamp: str) -> float:
    """Parse a metav1.Time into epoch seconds."""
    return datetime.fromisoformat(timestamp).timestamp()


def transition_time(condition: Mapping[str, Any]) -> float:
    """When a condition got its status, in seconds; 0 for one whose writer left that out, as the API allows."""
    return seconds_of(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else 0.0


class Timer:
    """A callback due at a time. When it is due, ``guard``, if set, decides whether it runs."""

    __slots__ = ("args", "call", "cancelled", "due", "guard")

    def __init__(self, due: float, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.due, self.call, self.args, self.cancelled = due, call, args, False
        self.guard: Callable[[Timer], bool] | None = None

    def run(self) -> None:
        """Run the callback unless the guard forbids it."""
        if self.guard is None or self.guard(self):
            self.call(*self.args)

    def cancel(self) -> None:
        self.cancelled = True


_Entry = tuple[float, int, Timer]


class SimClock:
    """Simulated clock with timers. ``now``, in seconds since the epoch, moves only in :meth:`run_until`.

    Only timers that are due soon are in a heap; later ones are unsorted, in slots of time. A large cluster has tens of
    thousands of timers, too many for one heap.
    """

    def __init__(self, start: float, seed: int) -> None:
        self.now = start
        self.rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._soon: list[_Entry] = []  # a heap: everything due up to the end of the slot
        self._slot = 0
        self._later: dict[int, list[_Entry]] = {}
        self._slots: list[int] = []  # a heap: slots that have timers
        self._order = count()

    def at(self, due: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call at ``due``, at the next step of time if past. Callbacks due together run in order of registration."""
        if due < self.now:  # noqa: PLR1730 - twice as fast as max, and called for every timer
            due = self.now
        timer, slot = Timer(due, call, args), int(due * _SLOTS)
        entry = (due, next(self._order), timer)
        if slot <= self._slot:
            heappush(self._soon, entry)
        elif slot in self._later:
            self._later[slot].append(entry)
        else:
            self._later[slot] = [entry]
            heappush(self._slots, slot)
        return timer

    def after(self, delay: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call ``delay`` seconds from now."""
        return self.at(self.now + delay, call, *args)

    def next_due(self) -> float | None:
        """Due time of the next callback, None if there is none."""
        while (entry := self._first()) is not None and entry[2].cancelled:
            heappop(self._soon)
        return entry[0] if entry is not None else None

    def run_until(self, end: float) -> None:
        """Run all callbacks due up to ``end`` (inclusive) and set ``now`` to ``end``."""
        while (entry := self._soon[0] if self._soon else self._first()) is not None and entry[0] <= end:
            due, _, timer = heappop(self._soon)
            if not timer.cancelled:
                if due > self.now:  # noqa: PLR1730
                    self.now = due
                guard = timer.guard
                if guard is None or guard(timer):
                    timer.call(*timer.args)
        self.now = max(self.now, end)

    def _first(self) -> _Entry | None:
        if not self._soon and self._slots:
            self._slot = heappop(self._slots)
            self._soon = self._later.pop(self._slot)
            heapify(self._soon)
        return self._soon[0] if self._soon else None

    def timestamp(self) -> str:
        """Format ``now`` as metav1.Time: RFC 3339, whole seconds."""
        return rfc3339(self.now)

    def micro_timestamp(self) -> str:
        """Format ``now`` as metav1.MicroTime."""
        fraction, seconds = modf(self.now)
        micros = round(fraction * 1e6)  # as datetime.fromtimestamp rounds
        if micros == 1_000_000:
            micros, seconds = 0, seconds + 1
        return f"{_format(int(seconds))[:-1]}.{micros:06}Z"


class Polls:
    """Calls each poll every ``period`` seconds, in order of addition; one returns whether it has work left.

    Whoever gives work to a poll calls :meth:`wake`.
    """

    def __init__(self, sim: SimClock, period: float) -> None:
        self._sim, self._period = sim, period
        self._polls: list[Callable[[], bool]] = []
        self._next = 0.0
        self._sleeps = True

    def add(self, poll: Callable[[], bool]) -> None:
        """Add a poll, before time continues: the first one is a period from now."""
        self._polls.append(poll)
        if len(self._polls) == 1:
            self._next = self._sim.now + self._period
            self.wake()

    def wake(self) -> None:
        """Call the polls again, from the next time on at which they are due."""
        if self._sleeps and self._polls:
            now, due, period = self._sim.now, self._next, self._period
            while due <= now:  # sums, as of a timer that sets itself again
                due += period
            self._sleeps = False
            self._sim.at(due, self._run)

    def _run(self) -> None:
        self._next, self._sleeps = self._sim.now + self._period, True
        has_work = [poll() for poll in self._polls]
        if any(has_work):
            self.wake()
