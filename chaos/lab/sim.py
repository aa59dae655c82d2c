"""Simulated time: a heap of callbacks, one thread, one seed. Same seed and calls, same history."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from typing import Any


def rfc3339(when: float) -> str:
    """A time in epoch seconds as Kubernetes writes metav1.Time: whole seconds, UTC."""
    return _formatted(int(when))


@lru_cache(maxsize=1024)
def _formatted(when: int) -> str:
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


class Sim:
    """``now`` is in seconds since the epoch; it moves only in :meth:`run_until`."""

    def __init__(self, start: float, seed: int) -> None:
        self.now = start
        self.rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = count()

    def at(self, due: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call at ``due``, or as soon as time moves if that is past. Calls due together run in order of asking."""
        timer = Timer(max(self.now, due), call, args)
        heapq.heappush(self._heap, (timer.due, next(self._order), timer))
        return timer

    def after(self, delay: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call ``delay`` seconds from now."""
        return self.at(self.now + delay, call, *args)

    def next_due(self) -> float | None:
        """When the next callback is due, None if there is none."""
        while self._heap and self._heap[0][2].cancelled:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def run_until(self, end: float) -> None:
        """Run everything due up to ``end`` (inclusive) and set ``now`` to ``end``."""
        heap = self._heap
        while heap and heap[0][0] <= end:
            due, _, timer = heapq.heappop(heap)
            if not timer.cancelled:
                self.now = max(self.now, due)
                timer.run()
        self.now = max(self.now, end)

    def timestamp(self) -> str:
        """Now as Kubernetes writes metav1.Time: RFC 3339, whole seconds."""
        return rfc3339(self.now)

    def micro_timestamp(self) -> str:
        """Now as Kubernetes writes metav1.MicroTime."""
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
