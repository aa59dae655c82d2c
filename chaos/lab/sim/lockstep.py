"""Time in lockstep: simulated time moves only while everybody sleeps on it and no request is in flight.

Time is told and slept on over TCP (:class:`TimeSource`), one client a connection, lines of ASCII ending in ``\\n``:

================== ==================================================================================================
``hello observer`` First line of a connection that only reads the time. Answer: ``ok``.
``hello participant`` ... of one that takes part: time stands still while it does not sleep. Answer: ``ok``.
``hello sleeper``  ... of one that holds time only until :data:`LINGER` seconds (wall) after a sleep, for a thread
                   that sleeps now and then and blocks on other things between. Answer: ``ok``.
``now``            Answer: seconds since the epoch with six decimals.
``sleep <until>``  Answer: the time, as soon as it is ``until`` (seconds since the epoch) or later.
``wake``           Ends this connection's sleep, which is then answered. Nothing happens if it does not sleep.
================== ==================================================================================================

A line that is not understood is answered ``error <why>``. Closing the connection ends the participation.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from chaos.lab.sim.clock import SimClock

TICK = 0.002  # wall seconds between two steps of time
LINGER = 0.05
SETTLE = 0.004  # wall seconds for which time stands still after a watch event was written, so that it is received
_REQUEST: ContextVar[object] = ContextVar("request")  # that this task works for
_MAX_LAG = 5 * TICK  # a stalled loop does not make time jump


class Sleeper:
    """A connection that takes part. ``until``: asleep up to then; None: awake."""

    def __init__(self, lockstep: Lockstep, strict: bool) -> None:
        self._lockstep, self.strict = lockstep, strict
        self.until: float | None = None
        self.awake_since = float("-inf")
        self._callback: Callable[[float], None] | None = None

    def sleep(self, until: float, answer: Callable[[float], None]) -> None:
        """Call ``answer`` with the time when it is ``until``."""
        self.until, self._callback = until, answer
        self._lockstep.notify()

    def wake(self) -> None:
        """End a sleep now."""
        answer, self._callback, self.until = self._callback, None, None
        if answer:
            self.awake_since = self._lockstep.wall()
            answer(self._lockstep.sim.now)

    def blocks_time(self, wall: float) -> bool:
        """True while time must stand still for it."""
        return self.until is None and (self.strict or wall - self.awake_since < LINGER)


class Lockstep:
    """Moves ``sim`` at most ``speed`` simulated seconds a wall second; always, if ``free``."""

    def __init__(self, sim: SimClock, speed: float = 20.0, free: bool = False) -> None:
        self.sim, self.speed, self.free = sim, speed, free
        self.sleepers: set[Sleeper] = set()
        self._in_flight = 0
        self._waiters: list[tuple[float, asyncio.Future[None], object]] = []
        self._wakeup = asyncio.Event()
        self._hold_until = 0.0
        self.wall = asyncio.get_running_loop().time

    def notify(self) -> None:
        """Something changed: look again whether time may move."""
        self._wakeup.set()

    def join(self, strict: bool) -> Sleeper:
        """Take part from now on."""
        sleeper = Sleeper(self, strict)
        self.sleepers.add(sleeper)
        return sleeper

    def leave(self, sleeper: Sleeper) -> None:
        self.sleepers.discard(sleeper)
        self.notify()

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """A request is in flight: time stands still."""
        token = _REQUEST.set(object())
        try:
            with self.subrequest():
                yield
        finally:
            _REQUEST.reset(token)

    @contextlib.contextmanager
    def subrequest(self) -> Iterator[None]:
        """A part of a request goes on beside the others; together they keep one participant waiting."""
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1
            self.notify()

    @contextlib.contextmanager
    def suspend_request(self) -> Iterator[None]:
        """Within a request: it waits for its client, time may move."""
        self._in_flight -= 1
        self.notify()
        try:
            yield
        finally:
            self._in_flight += 1

    async def wait_until(self, until: float) -> None:
        """Within a request: wait for simulated time, also while one awake participant waits for the request."""
        if until <= self.sim.now:
            return
        wait = (until, asyncio.get_running_loop().create_future(), _REQUEST.get(None) or object())
        self._waiters.append(wait)
        try:
            with self.suspend_request():
                await wait[1]
        finally:
            if wait in self._waiters:
                self._waiters.remove(wait)

    def hold_for_new_tasks(self) -> None:
        """Time stands still until the tasks made so far have begun to run, and made requests of their own."""
        self._in_flight += 1
        asyncio.get_running_loop().call_soon(self._release_hold)

    def _release_hold(self) -> None:
        self._in_flight -= 1
        self.notify()

    def on_event_written(self) -> None:
        """A watch event was written; let its receiver see it before time moves on."""
        self._hold_until = self.wall() + SETTLE

    def may_move(self) -> bool:
        """The rule of lockstep."""
        if self.free:
            return True
        wall = self.wall()
        awake = sum(s.blocks_time(wall) for s in self.sleepers)
        requests = len({request for _, _, request in self._waiters})
        waited_for = requests + sum(s.until is not None for s in self.sleepers)
        return not self._in_flight and awake <= requests and waited_for > 0

    async def run(self) -> None:
        """Move time, for ever."""
        last = self.wall()
        while True:
            if not self.may_move():
                self._wakeup.clear()
                with contextlib.suppress(TimeoutError):  # the end of a sleeper's linger is not told
                    async with asyncio.timeout(LINGER):  # wait_for of Python 3.11 can lose a cancellation
                        await self._wakeup.wait()
                last = self.wall()
                continue
            await asyncio.sleep(max(TICK, self._hold_until - self.wall()))
            wall = self.wall()
            passed, last = min(wall - max(last, self._hold_until), _MAX_LAG), wall
            if passed > 0 and self.may_move():
                self.step(self.sim.now + passed * self.speed)

    def step(self, limit: float) -> None:
        """Move to ``limit``, but not past anybody's waking nor past the first watch event."""
        hold = self._hold_until
        wakings = [s.until for s in self.sleepers if s.until is not None]
        target = max(min([limit, *wakings, *(until for until, _, _ in self._waiters)]), self.sim.now)
        while not self.free and (due := self.sim.next_due()) is not None and due <= target:
            self.sim.run_until(max(due, self.sim.now))
            if self._hold_until != hold or self._in_flight:
                break
        else:
            self.sim.run_until(target)
        self._wake_due()

    def _wake_due(self) -> None:
        now = self.sim.now
        for sleeper in [s for s in self.sleepers if s.until is not None and s.until <= now]:
            sleeper.wake()
        due = [wait for wait in self._waiters if wait[0] <= now]
        self._waiters = [wait for wait in self._waiters if wait[0] > now]
        for _, future, _ in due:
            if not future.done():
                future.set_result(None)


class TimeSource:
    """Serves a :class:`Lockstep` on a TCP port; see the module's text for the protocol."""

    def __init__(self, lockstep: Lockstep) -> None:
        self._lockstep = lockstep
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def connection_count(self) -> int:
        return len(self._writers)

    async def start(self) -> int:
        """Listen on loopback; the port."""
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
    """One connection of the time source."""

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
        else:
            self._write(f"error unknown command {word[:40]!r}")

    def close(self) -> None:
        if self._sleeper:
            self._lockstep.leave(self._sleeper)

    def _hello(self, role: str) -> None:
        if role not in {"observer", "participant", "sleeper"} or self._sleeper:
            self._write("error hello observer, participant or sleeper, once")
            return
        if role != "observer":
            self._sleeper = self._lockstep.join(strict=role == "participant")
        self._write("ok")

    def _sleep(self, text: str) -> None:
        try:
            until = float(text)
        except ValueError:
            self._write("error sleep until what?")
            return
        if self._sleeper is None or self._sleeper.until is not None:
            self._write("error an observer does not sleep, and nobody sleeps twice")
        elif until <= self._lockstep.sim.now:
            self._send_time(self._lockstep.sim.now)
        else:
            self._sleeper.sleep(until, self._send_time)

    def _send_time(self, now: float) -> None:
        self._write(f"{now:.6f}")

    def _write(self, line: str) -> None:
        if not self._writer.is_closing():
            self._writer.write(line.encode() + b"\n")
