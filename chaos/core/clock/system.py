"""This machine's clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from chaos.core.clock.uptime import uptime
from chaos.core.clock.wake_event import WakeEvent, wait_readable
from chaos.core.threads import SYSTEM_THREADS

_GATHER = 0.04  # seconds: less than consistent reads wait for what is on its way


class SystemClock:
    """This machine's time, read once and carried on by its uptime: it never jumps, and no suspension is missing."""

    threads = SYSTEM_THREADS

    def __init__(self) -> None:
        self._offset = time.time() - uptime()
        self._wake_event = WakeEvent()

    def now(self) -> float:
        return uptime() + self._offset

    def sleep(self, seconds: float) -> bool:
        """Sleep ``seconds``; False if :meth:`wake` ended the sleep early."""
        return not wait_readable(max(seconds, 0.0), self._wake_event)

    def gather(self) -> None:
        """Wait a moment that is short for every judgement, in which a busy stream has several events."""
        time.sleep(_GATHER)

    def settle(self) -> bool:
        """No-op: real time does not wait."""
        return False

    def wake(self) -> None:
        """End every sleep, now and from now on, until :meth:`resume`. Safe in a signal handler."""
        self._wake_event.set()

    def resume(self) -> None:
        """Let sleeps last again after :meth:`wake`."""
        self._wake_event.clear()

    @contextmanager
    def participant(self) -> Iterator[None]:
        """No-op: real time has no lockstep."""
        yield

    def release(self) -> None:
        """No-op: this clock has no state per thread."""

    def close(self) -> None:
        self._wake_event.close()
