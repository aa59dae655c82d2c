"""The time source: clients read the time and sleep over TCP, one client per connection, in ASCII lines:

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

from chaos.lab.sim.clients import ProcessGoneError
from chaos.lab.sim.lockstep import Lockstep, Sleeper


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
