"""Interruptions wait while something is made that must be known before it can be taken back."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def defer_signals() -> Iterator[None]:
    """SIGINT and SIGTERM that come meanwhile act at the end of the block; only the main thread gets them at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def keep(number: int, _: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, keep) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for caught in came:
            signal.raise_signal(caught)
