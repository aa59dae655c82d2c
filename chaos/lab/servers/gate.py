"""A TCP port of loopback that is kept for one server, also while that does not listen."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

from chaos.lab.lockstep import Lockstep


class Listener(Protocol):
    """What listening gives; closing it closes the socket."""

    def close(self) -> None: ...


Listen = Callable[[socket.socket], Awaitable[Listener]]


def _bound(port: int = 0) -> socket.socket:
    """A socket that refuses connections: bound, but not listening."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    sock.setblocking(False)
    return sock


class Gate:
    """Open: the server listens. Shut: connections are refused."""

    def __init__(self) -> None:
        self._socket = _bound()
        self.port = int(self._socket.getsockname()[1])
        self._listener: Listener | None = None
        self._opening: asyncio.Task[None] | None = None
        self._wanted = False

    def open(self, listen: Listen, lockstep: Lockstep) -> None:
        """Listen soon; simulated time waits for it."""
        self._wanted = True
        if self._listener is None and self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open(listen, lockstep))

    def shut(self) -> None:
        """Refuse connections from now on; those that exist are the server's to close."""
        self._wanted = False
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._socket = _bound(self.port)

    async def settle(self) -> None:
        """Wait until an opening that is under way is done."""
        if self._opening is not None:
            await self._opening

    def close(self) -> None:
        """Give the port back."""
        if self._opening is not None:
            self._opening.cancel()
        if self._listener is not None:
            self._listener.close()
        self._socket.close()

    async def _open(self, listen: Listen, lockstep: Lockstep) -> None:
        with lockstep.request():
            self._listener = await listen(self._socket)
        self._opening = None
        if not self._wanted:
            self.shut()
