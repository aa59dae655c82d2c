"""Simulated time for threads that wait for nothing but the clock and each other: every run has the same history."""

from __future__ import annotations

from collections.abc import Callable

from chaos.core.ports import Observer
from chaos.lab.facade import SimClock
from chaos.rehearsal.connection import RehearsalClock
from tests.kit.misbehaving import Lines

PATIENCE = 3600.0  # simulated seconds until a test gives up


class TurnClock(RehearsalClock):
    """A clock that the test drives. Other threads run only while the test sleeps on it, one at a time."""

    def __init__(self, start: float = 1000.0) -> None:
        super().__init__(SimClock(start, 1))

    def advance(self, seconds: float) -> None:
        """Let time pass, and everybody work meanwhile."""
        assert self.sleep(seconds)

    def advance_to(self, moment: float) -> None:
        self.advance(moment - self.now())

    def until(self, holds: Callable[[], bool], step: float = 0.01) -> None:
        """Let time pass in steps until ``holds``."""
        end = self.now() + PATIENCE
        while not holds():
            assert self.now() < end, "it never came"
            self.advance(step)


def first_scrapes(observer: Observer, clock: TurnClock) -> Lines:
    """The lines of three seconds."""
    lines = Lines()
    observer.start(lines)
    clock.advance(3)
    assert observer.has_synced()
    observer.stop()
    clock.close()
    return lines


class Gate:
    """Open at first. While it is closed, every thread that passes waits until it is opened."""

    def __init__(self, clock: TurnClock) -> None:
        self._clock = clock
        self._waiting: list[Callable[[], None]] = []
        self._is_open = True

    def close(self) -> None:
        self._is_open = False

    def open(self) -> None:
        self._is_open = True
        while self._waiting:
            self._waiting.pop(0)()

    def wait(self) -> None:
        if not self._is_open:
            self._clock.threads.block(float("inf"), self._waiting.append)
