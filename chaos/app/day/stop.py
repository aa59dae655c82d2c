"""Why the work on a game day stops: a halt, which is watched, a signal, or another process that works on it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from chaos.app.day.store import DayStore
from chaos.core.errors import Aborted, NodefallError, Refused
from chaos.core.ports import Clock
from chaos.core.threads import ContextThread
from chaos.engine.stop import Interrupted, StopRequest
from chaos.gameday.state import Halt

_PERIOD = 0.8  # wall seconds between two reads: with the tick of a run, a halt has effect within 2 s
_log = logging.getLogger(__name__)


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


@contextmanager
def watch_day(store: DayStore, epoch: int, stop: DayStop) -> Iterator[None]:
    """Report to ``stop`` for the block when the day is halted, deleted, damaged or taken over by another process.

    An API server that does not answer is no reason to stop: the locks of run and day see to that.
    """
    ended = threading.Event()

    def watch() -> None:
        try:
            while not ended.wait(_PERIOD) and not stop.loss:
                _inspect(store, epoch, stop)
        except Exception as error:  # noqa: BLE001 - a watch that silently ends would miss a halt
            _log.exception("the watch of the game day crashed")
            stop.on_crash(error)

    thread = ContextThread(watch, "game day")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _inspect(store: DayStore, epoch: int, stop: DayStop) -> None:
    try:
        state = store.read()
    except Refused as error:
        stop.on_loss(error.message)
        return
    except NodefallError as error:
        _log.debug("the state of the game day was not read: %s", error.message)
        return
    if state is None:
        stop.on_loss(f"the state of game day {store.name} was deleted")
    elif state.epoch != epoch:
        stop.on_loss(f"{state.day} of {store.name} was taken over by {state.holder}")
    elif state.halt and not stop.halt:
        stop.on_halt(state.halt)
