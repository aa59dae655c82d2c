"""Simulated time: a heap of callbacks, one thread, one seed. Same seed and calls, same history."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

_SLOTS = 64  # of time in a second


def rfc3339(when: float) -> str:
    """A time in epoch seconds as Kubernetes writes metav1.Time: whole seconds, UTC."""
    return _format(int(when))


@lru_cache(maxsize=1024)
def _format(when: int) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(timestamp: str) -> float:
    """A metav1.Time in epoch seconds."""
    return datetime.fromisoformat(timestamp).timestamp()


class Timer:
    """A callback that is due; ``cancel`` makes it never run. ``guard`` is asked when it is due whether it may."""

    __slots__ = ("args", "call", "cancelled", "due", "guard")

    def __init__(self, due: float, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.due, self.call, self.args, self.cancelled = due, call, args, False
        self.guard: Callable[[Timer], bool] | None = None

    def run(self) -> None:
        """Do it, if it may be done."""
        if self.guard is None or self.guard(self):
            self.call(*self.args)

    def cancel(self) -> None:
        self.cancelled = True


_Entry = tuple[float, int, Timer]


class SimClock:
    """``now`` is in seconds since the epoch; it moves only in :meth:`run_until`.

    Only what is due soon is in a heap: what comes later waits unsorted, in slots of time. A large cluster has tens of
    thousands of timers, and a heap of them is slow.
    """

    def __init__(self, start: float, seed: int) -> None:
        self.now = start
        self.rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._soon: list[_Entry] = []  # a heap: everything due up to the end of the slot
        self._slot = 0
        self._later: dict[int, list[_Entry]] = {}
        self._slots: list[int] = []  # a heap: those that have timers
        self._order = count()

    def at(self, due: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call at ``due``, or as soon as time moves if that is past. Calls due together run in order of asking."""
        due = max(self.now, due)
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
        """When the next callback is due, None if there is none."""
        while (entry := self._first()) is not None and entry[2].cancelled:
            heappop(self._soon)
        return entry[0] if entry is not None else None

    def run_until(self, end: float) -> None:
        """Run everything due up to ``end`` (inclusive) and set ``now`` to ``end``."""
        while (entry := self._first()) is not None and entry[0] <= end:
            due, _, timer = heappop(self._soon)
            if not timer.cancelled:
                self.now = max(self.now, due)
                timer.run()
        self.now = max(self.now, end)

    def _first(self) -> _Entry | None:
        if not self._soon and self._slots:
            self._slot = heappop(self._slots)
            self._soon = self._later.pop(self._slot)
            heapify(self._soon)
        return self._soon[0] if self._soon else None

    def timestamp(self) -> str:
        """Now as Kubernetes writes metav1.Time: RFC 3339, whole seconds."""
        return rfc3339(self.now)

    def micro_timestamp(self) -> str:
        """Now as Kubernetes writes metav1.MicroTime."""
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
