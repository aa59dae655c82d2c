"""Thread of an observer: a crash is logged and becomes a blind window, and the thread never spins."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from chaos.core.errors import NodefallError
from chaos.core.ports import Clock

_MIN_PAUSE = 0.05  # wall seconds to wait when the clock was woken and does not sleep
_log = logging.getLogger(__name__)


class ObserverThread:
    """A daemon thread that runs ``body`` once. ``on_crash`` is called with the reason if an exception ends it."""

    def __init__(self, name: str, clock: Clock, body: Callable[[], None], on_crash: Callable[[str], None]) -> None:
        self._clock, self._body, self._on_crash = clock, body, on_crash
        self._stop = threading.Event()
        self._name, self._thread = name, clock.threads.thread(self._run, name)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Request the thread to end. Does not wait: it may sleep on a clock that stands still meanwhile."""
        self._stop.set()

    def pause(self, seconds: float) -> None:
        """Sleep ``seconds`` of cluster time, or less when stopping; never returns immediately in a loop."""
        if not self.is_stopping and not self._clock.sleep(seconds):
            self._stop.wait(_MIN_PAUSE)

    def _run(self) -> None:
        try:
            self._body()
        except Exception as error:  # noqa: BLE001 - the crash of an observer is a blind window
            if self.is_stopping:
                _log.debug("thread %s ended while stopping", self._name, exc_info=True)
                return
            _log.exception("thread %s crashed", self._name)
            with suppress(NodefallError):  # the clock is gone too, which ends the run anyway
                self._on_crash(f"{self._name} crashed: {type(error).__name__}: {error}")
