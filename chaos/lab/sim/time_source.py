"""The TCP ports of a lab, and the one that serves time.

Reservation of a TCP port of a loopback address for one server, also while the server does not listen.

The time source: clients read the time and sleep over TCP, one client per connection, in ASCII lines:

================== ==================================================================================================
``hello observer`` First line of a client that only reads the time. Response: ``ok``.
``hello participant`` ... of a client that stops time while it does not sleep. Response: ``ok``.
``hello sleeper``  ... of a client that stops time only until :data:`LINGER` seconds (wall) after a sleep: a thread
                   that sleeps now and then, and blocks on other things in between. Response: ``ok``.
``process <pid> <start>`` The client's process ID and start, in clock ticks after the boot. Response: ``ok`` if the
                   lab observes it: time then stops while the process has something to do, and not for LINGER.
``now``            Response: seconds since the epoch with six decimals.
``sleep <until>``  Response: the time, as soon as it is ``until`` (seconds since the epoch) or later, for an observed
                   process also no client has anything to do: a sleep until a time that is over waits for that alone.
``wake``           Ends the sleep of this connection, whose response is then sent. No effect without a sleep.
================== ==================================================================================================

Response to an invalid line: ``error <reason>``. Closing the connection ends the participation.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

from chaos.lab.sim.clients import ProcessGoneError
from chaos.lab.sim.lockstep import Lockstep, Sleeper


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


class TimeSource:
    """TCP server of a :class:`Lockstep`; see the module's docstring for the protocol."""

    def __init__(self, lockstep: Lockstep) -> None:
        self._lockstep = lockstep
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def connection_count(self) -> int:
        return len(self._writers)

    async def start(self) -> int:
        """Listen on loopback and return the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1024)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server:
            self._server.close()
        for writer in list(self._writers):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(self._lockstep, writer)
        self._writers.add(writer)
        try:
            while line := await reader.readline():
                client.handle_line(line.decode("ascii", "replace").strip())
        except (ConnectionError, ValueError):  # ValueError: a line beyond the limit
            pass
        finally:
            self._writers.discard(writer)
            client.close()
            writer.close()


class _Client:
    """A connection of the time source."""

    def __init__(self, lockstep: Lockstep, writer: asyncio.StreamWriter) -> None:
        self._lockstep, self._writer = lockstep, writer
        self._sleeper: Sleeper | None = None

    def handle_line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "now":
            self._send_time(self._lockstep.sim.now)
        elif word == "sleep":
            self._sleep(rest)
        elif word == "wake":
            if self._sleeper:
                self._sleeper.wake()
        elif word == "hello":
            self._hello(rest)
        elif word == "process":
            self._observe(rest)
        else:
            self._write(f"error unknown command {word[:40]!r}")

    def close(self) -> None:
        if not self._sleeper:
            return
        if self._sleeper.process and self._lockstep.clients is not None:
            self._lockstep.clients.leave(self._sleeper.process)
        self._lockstep.leave(self._sleeper)

    def _hello(self, role: str) -> None:
        if role not in {"observer", "participant", "sleeper"} or self._sleeper:
            self._write("error hello observer, participant or sleeper, once")
            return
        if role != "observer":
            self._sleeper = self._lockstep.join(strict=role == "participant")
        self._write("ok")

    def _observe(self, text: str) -> None:
        clients, sleeper = self._lockstep.clients, self._sleeper
        if clients is None or self._lockstep.free:
            self._write("error time does not wait for processes")
        elif sleeper is None or sleeper.process:
            self._write("error process follows hello participant or sleeper, once")
        else:
            try:
                pid, start_ticks = map(int, text.split())
                clients.join((pid, start_ticks))
            except (ValueError, ProcessGoneError) as error:
                self._write(f"error {error}")
                return
            sleeper.process = pid, start_ticks
            self._write("ok")

    def _sleep(self, text: str) -> None:
        try:
            until = float(text)
        except ValueError:
            self._write("error sleep needs a time in seconds")
            return
        if self._sleeper is None or self._sleeper.until is not None:
            self._write("error an observer cannot sleep, and only one sleep at a time is possible")
        elif until <= self._lockstep.sim.now and not self._sleeper.is_observed:
            self._send_time(self._lockstep.sim.now)
        else:
            self._sleeper.sleep(until, self._send_time)

    def _send_time(self, now: float) -> None:
        self._write(f"{now:.6f}")

    def _write(self, line: str) -> None:
        if not self._writer.is_closing():
            self._writer.write(line.encode() + b"\n")
