"""Why a run ends early, and the signals that end it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from chaos.core.errors import Aborted
from chaos.core.ports import Clock


class Interrupted(Exception):
    """A signal asked the run to stop; ``signum`` is its number."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"signal {signum}")
        self.signum = signum


@dataclass
class StopRequest:
    """Set by signal handlers and by threads of the run; checked at every tick."""

    signum: int | None = None
    crash: BaseException | None = None
    reason: str = ""  # given by whoever runs nodefall abort
    loss: str = ""  # why the cluster's lock is lost

    def check(self) -> None:
        """Raises Interrupted, Aborted, or the exception that a thread of the run ended with."""
        if self.crash:
            raise self.crash
        if self.signum:
            raise Interrupted(self.signum)
        if self.loss:
            raise Aborted(self.loss, hint="see nodefall status")
        if self.reason:
            raise Aborted(f"asked to stop: {self.reason}")

    def request(self, why: str) -> None:
        """Stop the run as nodefall abort does."""
        self.reason = why

    def report_loss(self, why: str) -> None:
        """Stop the run because another process has taken or deleted the cluster's lock."""
        self.loss = why

    def report_crash(self, error: BaseException) -> None:
        """Stop the run because one of its threads crashed; the first crash counts."""
        if self.crash is None:
            self.crash = error


_Handler = Callable[[int, FrameType | None], None]


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer SIGINT and SIGTERM to the end of the block. Changes nothing outside the main thread."""
    received: list[int] = []

    def remember(number: int, _: FrameType | None) -> None:
        received.append(number)

    try:
        with _handlers({signal.SIGINT: remember, signal.SIGTERM: remember}):
            yield
    finally:
        for number in received:
            signal.raise_signal(number)


@contextmanager
def stop_on_signal(stop: Callable[[int], None]) -> Iterator[None]:
    """Call ``stop`` with the number of each SIGINT, SIGTERM or SIGHUP. Changes nothing outside the main thread.

    SIGHUP, sent when the terminal is closed, counts as SIGTERM; it stays ignored where nohup(1) has ignored it.
    """

    def handle(number: int, _: FrameType | None) -> None:
        stop(signal.SIGTERM if number == signal.SIGHUP else number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    with _handlers(dict.fromkeys(numbers, handle)):
        yield


@contextmanager
def _handlers(handlers: Mapping[int, _Handler]) -> Iterator[None]:
    """Install signal handlers for the block; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def stop_run(request: StopRequest, clock: Clock, number: int) -> None:
    """Stop the run on the first signal."""
    if request.signum is None:
        request.signum = number
        clock.wake()
