"""Polls with one period, in one order: only while one has work, yet at the times at which they would always run."""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.sim.clock import SimClock


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
        """Add a poll, before time goes on: the first one is a period from now."""
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
