"""Reservation of a TCP port of a loopback address for one server, also while the server does not listen."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

from chaos.lab.sim.lockstep import Lockstep


class Listener(Protocol):
    """A listening server; closing it closes the socket."""

    def close(self) -> None: ...


LOOPBACK = "127.0.0.1"
_QUEUE = 2  # a queue of length 0 holds one connection; one more, as the kernel counts loosely
ListenFunc = Callable[[socket.socket], Awaitable[Listener]]


def _bind_socket(address: str, port: int) -> socket.socket:
    """Bind a socket. Connections are refused as long as it does not listen."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, port))
    sock.setblocking(False)
    return sock


def _fill(address: str, port: int) -> socket.socket:
    """A connection that waits to be accepted, or is not answered."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.connect_ex((address, port))
    return sock


class PortReservation:
    """A reserved port: a server listens on it, connections are refused, or, while it is blocked, SYNs are dropped."""

    def __init__(self, address: str = LOOPBACK, port: int = 0) -> None:
        self.address = address
        self._socket = _bind_socket(address, port)
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
        self._socket = _bind_socket(self.address, self.port)
        self._socket.listen(0)
        # No one accepts: once the queue is full, the kernel drops SYNs
        self._fillers = [_fill(self.address, self.port) for _ in range(_QUEUE)]

    def unblock(self) -> None:
        """End the block: the server listens again, or connections are refused. No effect without a block."""
        if not self._fillers:
            return
        for sock in (*self._fillers, self._socket):
            sock.close()
        self._fillers = []
        self._socket = _bind_socket(self.address, self.port)
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
            self._socket = _bind_socket(self.address, self.port)

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
