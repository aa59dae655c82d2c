"""Threads of observers: they never die silently and never spin."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from chaos.model.errors import NodefallError
from chaos.model.ports import Clock
from chaos.model.threads import ContextThread

_MIN_PAUSE = 0.05  # wall seconds to wait where the clock was woken and would not sleep


class ObserverThread:
    """A daemon thread that runs ``body`` once; ``failed`` is told what ended it too early."""

    def __init__(self, name: str, clock: Clock, body: Callable[[], None], failed: Callable[[str], None]) -> None:
        self._clock, self._body, self._on_crash = clock, body, failed
        self._stop = threading.Event()
        self._thread = ContextThread(self._run, name)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Ask it to end. Not waited for: it may sleep on a clock that stands still for us."""
        self._stop.set()

    def pause(self, seconds: float) -> None:
        """Sleep ``seconds`` of cluster time, less if stopping; never returns at once again and again."""
        if not self.is_stopping and not self._clock.sleep(seconds):
            self._stop.wait(_MIN_PAUSE)

    def _run(self) -> None:
        try:
            self._body()
        except Exception as error:  # noqa: BLE001 - whatever ends an eye must be told as blindness, not lost in a thread
            if not self.is_stopping:
                with suppress(NodefallError):  # the clock itself is gone, which ends the run anyway
                    self._on_crash(f"{self._thread.name} broke: {type(error).__name__}: {error}")
