"""Why the work on a game day stops: a halt, a signal, or another process that works on it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from chaos.core.errors import Aborted
from chaos.core.ports import Clock
from chaos.engine.stop import Interrupted, StopRequest
from chaos.gameday.state import Halt


class DayHalted(Aborted):
    """Someone has halted the day; it goes on after ``nodefall gameday resume``."""


@dataclass
class DayStop:
    """Set by signal handlers and threads, and checked by every wait. ``clock`` is that of the waits.

    A run that is active is stopped, too: by a halt and a loss at once, by a signal in its own way.
    """

    clock: Clock
    signum: int | None = None
    halt: Halt | None = None
    loss: str = ""
    crash: BaseException | None = None
    _run: tuple[StopRequest, Clock] | None = None
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_set(self) -> bool:
        """Whether the work stops."""
        return bool(self.crash or self.signum or self.loss or self.halt)

    def check(self) -> None:
        """Raises DayHalted, Interrupted, Aborted if the day is no longer ours, or what a thread crashed with."""
        if self.crash:
            raise self.crash
        if self.signum:
            raise Interrupted(self.signum)
        if self.loss:
            raise Aborted(self.loss, hint="see nodefall gameday status")
        if self.halt:
            raise DayHalted(
                describe_halt(self.halt), hint="nodefall gameday resume lets the day go on, by the same command"
            )

    def begin_run(self, stop: StopRequest, clock: Clock) -> None:
        """A run has begun: stop it if the day stops, or did so since the last check."""
        with self._mutex:
            self._run = stop, clock
        stop.signum = stop.signum or self.signum
        self._stop_run()

    def end_run(self) -> None:
        """The run has ended."""
        with self._mutex:
            self._run = None

    def on_signal(self, number: int) -> None:
        """A handler: takes no lock."""
        self.signum = self.signum or number
        self.clock.wake()

    def on_halt(self, halt: Halt) -> None:
        """The state of the day is halted."""
        self.halt = halt
        self._stop_run()
        self.clock.wake()

    def on_loss(self, why: str) -> None:
        """Another process works on the day, or its state is gone."""
        self.loss = self.loss or why
        self._stop_run()
        self.clock.wake()

    def on_crash(self, error: BaseException) -> None:
        """A thread has crashed."""
        self.crash = self.crash or error
        self.on_loss(f"a thread crashed: {error}")

    def _stop_run(self) -> None:
        why = self.loss or (describe_halt(self.halt) if self.halt else "")
        with self._mutex:
            if why and self._run:
                stop, clock = self._run
                stop.request(why)
                clock.wake()


def describe_halt(halt: Halt) -> str:
    """Who has halted the day, and why."""
    return f"game day halted by {halt.by}" + (f": {halt.reason}" if halt.reason else "")
