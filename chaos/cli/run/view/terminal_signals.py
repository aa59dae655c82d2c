"""Signals that stop or end the process at the terminal, which is restored first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_STOPPING = (signal.SIGTSTP, signal.SIGQUIT)  # Ctrl-Z and Ctrl-\: what they do by default stays


class TerminalSignals:
    """Calls ``suspend`` before Ctrl-Z stops or Ctrl-\\ ends the process, and ``resume`` when it goes on.

    Changes nothing outside the main thread. A signal that is ignored or handled by others stays so.
    """

    def __init__(self, suspend: Callable[[], None], resume: Callable[[], None]) -> None:
        self._suspend, self._resume = suspend, resume
        self._former: dict[int, Any] = {}

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _STOPPING:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._former[number] = signal.signal(number, self._handle)

    def restore(self) -> None:
        """Idempotent."""
        while self._former:
            number, handler = self._former.popitem()
            signal.signal(number, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        try:
            self._suspend()
        except (OSError, ValueError):
            pass  # the terminal is gone; the signal does what it does
        finally:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            signal.signal(number, self._handle)  # it was stopped, and goes on
            self._resume()
