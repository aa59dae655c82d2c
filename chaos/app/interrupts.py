"""Signal handling: deferring signals for a moment, and stopping a run on them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

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
