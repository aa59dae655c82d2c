"""This machine's clock, and a flag that ends a sleep.

The time since boot continues while this machine is suspended and its clock is set: the cluster's lock and a run use it.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from chaos.core.threads import SYSTEM_THREADS

_GATHER = 0.04  # seconds: less than consistent reads wait for what is on its way


def wall_time() -> float:
    """Seconds since the epoch by this machine's clock, for what other machines have written with theirs."""
    return time.time()


def uptime() -> float:
    """Seconds since boot, including those in which the machine was suspended, where the system counts them."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class WakeEvent:
    """A flag that selectors can wait for. Setting it takes no lock, so a signal handler may."""

    def __init__(self) -> None:
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)

    def fileno(self) -> int:
        return self._read.fileno()

    def set(self) -> None:
        with suppress(BlockingIOError):  # full: the flag is set already
            self._write.send(b"!")

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while self._read.recv(4096):
                pass

    def close(self) -> None:
        self._read.close()
        self._write.close()


def wait_readable(timeout: float | None, *sources: WakeEvent | socket.socket) -> set[int]:
    """File descriptors of the ``sources`` that are readable; empty after ``timeout`` seconds of wall time."""
    with selectors.DefaultSelector() as selector:
        for source in sources:
            selector.register(source, selectors.EVENT_READ)
        return {key.fd for key, _ in selector.select(timeout)}


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
