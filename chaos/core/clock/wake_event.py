"""A flag that ends a sleep, and waiting for it together with sockets."""

from __future__ import annotations

import selectors
import socket
from contextlib import suppress


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
