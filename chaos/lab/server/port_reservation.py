"""Reservation of a TCP port on loopback for one server, also while the server does not listen."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

from chaos.lab.sim.lockstep import Lockstep


class Listener(Protocol):
    """A listening server; closing it closes the socket."""

    def close(self) -> None: ...


_QUEUE = 2  # a queue of length 0 holds one connection; one more, as the kernel counts loosely
ListenFunc = Callable[[socket.socket], Awaitable[Listener]]


def _bind_socket(port: int = 0) -> socket.socket:
    """Bind a socket. Connections are refused as long as it does not listen."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    sock.setblocking(False)
    return sock


def _fill(port: int) -> socket.socket:
    """A connection that waits to be accepted, or is not answered."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.connect_ex(("127.0.0.1", port))
    return sock


class PortReservation:
    """A reserved port: a server listens on it, connections are refused, or, while it is blocked, SYNs are dropped."""

    def __init__(self) -> None:
        self._socket = _bind_socket()
        self.port = int(self._socket.getsockname()[1])
        self._listener: Listener | None = None
        self._listen_task: asyncio.Task[None] | None = None
        self._should_listen = False
        self._resume: tuple[ListenFunc, Lockstep] | None = None  # what listens again after a block
        self._fillers: list[socket.socket] = []

    def block(self) -> None:
        """Drop the SYNs of new connections; those that exist are left to the server. No effect when blocked."""
        if self._fillers:
            return
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        else:
            self._socket.close()
        self._socket = _bind_socket(self.port)
        self._socket.listen(0)
        # No one accepts: once the queue is full, the kernel drops SYNs
        self._fillers = [_fill(self.port) for _ in range(_QUEUE)]

    def unblock(self) -> None:
        """End the block: the server listens again, or connections are refused. No effect without a block."""
        if not self._fillers:
            return
        for sock in (*self._fillers, self._socket):
            sock.close()
        self._fillers = []
        self._socket = _bind_socket(self.port)
        if self._should_listen and self._resume is not None:
            self.start_listening(*self._resume)

    def start_listening(self, listen: ListenFunc, lockstep: Lockstep) -> None:
        """Start to listen in a task; simulated time waits for it."""
        self._should_listen, self._resume = True, (listen, lockstep)
        if not self._fillers and self._listener is None and self._listen_task is None:
            self._listen_task = asyncio.get_running_loop().create_task(self._start(listen, lockstep))

    def stop_listening(self) -> None:
        """Refuse new connections; the server closes existing ones itself."""
        self._should_listen = False
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._socket = _bind_socket(self.port)

    async def wait_started(self) -> None:
        """Wait for the task that starts to listen, if any."""
        if self._listen_task is not None:
            await self._listen_task

    def close(self) -> None:
        """Release the port."""
        if self._listen_task is not None:
            self._listen_task.cancel()
        if self._listener is not None:
            self._listener.close()
        for sock in (*self._fillers, self._socket):
            sock.close()

    async def _start(self, listen: ListenFunc, lockstep: Lockstep) -> None:
        with lockstep.request():
            self._listener = await listen(self._socket)
        self._listen_task = None
        if not self._should_listen:
            self.stop_listening()
