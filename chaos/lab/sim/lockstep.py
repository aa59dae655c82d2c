"""Lockstep: simulated time moves only while all participants sleep and no request is in flight.

Clients read the time and sleep over TCP (:class:`TimeSource`), one client per connection, in ASCII lines:

================== ==================================================================================================
``hello observer`` First line of a client that only reads the time. Response: ``ok``.
``hello participant`` ... of a client that stops time while it does not sleep. Response: ``ok``.
``hello sleeper``  ... of a client that stops time only until :data:`LINGER` seconds (wall) after a sleep: a thread
                   that sleeps now and then, and blocks on other things in between. Response: ``ok``.
``now``            Response: seconds since the epoch with six decimals.
``sleep <until>``  Response: the time, as soon as it is ``until`` (seconds since the epoch) or later.
``wake``           Ends the sleep of this connection, whose response is then sent. No effect without a sleep.
================== ==================================================================================================

Response to an invalid line: ``error <reason>``. Closing the connection ends the participation.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from chaos.lab.sim.clock import SimClock

TICK = 0.002  # wall seconds between two steps of time
LINGER = 0.05
SETTLE = 0.004  # wall seconds without a step of time after a watch event was written, so that it is received
CALM = 20.0  # highest speed on a busy machine; the two above are for this speed
_BUSY = 0.005  # wall seconds by which a step is late on a busy machine
_RECOVERY = 1.0  # wall seconds until a busy machine counts as idle again
_REQUEST: ContextVar[object] = ContextVar("request")  # of the current task
_MAX_LAG = 5 * TICK  # a stalled loop must not make time jump


class Sleeper:
    """A participant. ``until``: end of its sleep; None while it is awake."""

    def __init__(self, lockstep: Lockstep, strict: bool) -> None:
        self._lockstep, self.strict = lockstep, strict
        self.until: float | None = None
        self.awake_since = float("-inf")
        self._callback: Callable[[float], None] | None = None

    def sleep(self, until: float, callback: Callable[[float], None]) -> None:
        """Call ``callback`` with the time once it is ``until``."""
        self.until, self._callback = until, callback
        self._lockstep.notify()

    def wake(self) -> None:
        """End the sleep now."""
        callback, self._callback, self.until = self._callback, None, None
        if callback:
            self.awake_since = self._lockstep.wall()
            callback(self._lockstep.sim.now)

    def blocks_time(self, wall: float) -> bool:
        """Whether time must not move because of this participant."""
        return self.until is None and (self.strict or wall - self.awake_since < self._lockstep.margin * LINGER)


class Lockstep:
    """Moves ``sim`` by at most ``speed`` simulated seconds per wall second; without conditions if ``free``.

    ``careful``: above CALM, clients get more wall time to respond, by the factor ``margin``, and the speed is CALM
    while the machine is busy, so that what a client observes is hardly later than at CALM.
    """

    def __init__(self, sim: SimClock, speed: float = CALM, free: bool = False, careful: bool = False) -> None:
        self.sim, self.speed, self.free, self._careful = sim, speed, free, careful
        self.margin, self._calm_until = max(1.0, speed / CALM) if careful else 1.0, float("-inf")
        self.sleepers: set[Sleeper] = set()
        self._in_flight = 0
        self._waiters: list[tuple[float, asyncio.Future[None], object]] = []  # no request: of no participant
        self._wakeup = asyncio.Event()
        self._hold_until = 0.0
        self.wall = asyncio.get_running_loop().time

    def notify(self) -> None:
        """Re-evaluate whether time may move."""
        self._wakeup.set()

    def join(self, strict: bool) -> Sleeper:
        """Add a participant."""
        sleeper = Sleeper(self, strict)
        self.sleepers.add(sleeper)
        return sleeper

    def leave(self, sleeper: Sleeper) -> None:
        self.sleepers.discard(sleeper)
        self.notify()

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Count a request in flight: time does not move."""
        token = _REQUEST.set(object())
        try:
            with self.subrequest():
                yield
        finally:
            _REQUEST.reset(token)

    @contextlib.contextmanager
    def subrequest(self) -> Iterator[None]:
        """Count a concurrent part of the current request; together they block one participant."""
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1
            self.notify()

    @contextlib.contextmanager
    def suspend_request(self) -> Iterator[None]:
        """Let time move within a request that waits for its client."""
        self._in_flight -= 1
        self.notify()
        try:
            yield
        finally:
            self._in_flight += 1

    async def wait_until(self, until: float, *, background: bool = False) -> None:
        """Wait for simulated time within a request, also while one awake participant waits for that request.

        ``background``: no participant does.
        """
        if until <= self.sim.now:
            return
        request = None if background else _REQUEST.get(None) or object()
        waiter = (until, asyncio.get_running_loop().create_future(), request)
        self._waiters.append(waiter)
        try:
            with self.suspend_request():
                await waiter[1]
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def hold_for_new_tasks(self) -> None:
        """Stop time until the tasks created so far have run and made their own requests."""
        self._in_flight += 1
        asyncio.get_running_loop().call_soon(self._release_hold)

    def _release_hold(self) -> None:
        self._in_flight -= 1
        self.notify()

    def on_event_written(self) -> None:
        """Stop time for :data:`SETTLE` seconds, or longer at a higher speed, after a watch event was written."""
        self._hold_until = self.wall() + self.margin * SETTLE

    def may_move(self) -> bool:
        """Whether time may move: every awake participant waits for a request, and at least one waits for time."""
        if self.free:
            return True
        wall = self.wall()
        awake = sum(s.blocks_time(wall) for s in self.sleepers)
        requests = len({request for _, _, request in self._waiters if request is not None})
        waited_for = len(self._waiters) + sum(s.until is not None for s in self.sleepers)
        return not self._in_flight and awake <= requests and waited_for > 0

    async def run(self) -> None:
        """Move time until cancelled."""
        last = self.wall()
        while True:
            if not self.may_move():
                self._wakeup.clear()
                with contextlib.suppress(TimeoutError):  # no notification comes when a sleeper's linger ends
                    async with asyncio.timeout(LINGER):  # wait_for of Python 3.11 can lose a cancellation
                        await self._wakeup.wait()
                last = self.wall()
                continue
            end = max(self.wall() + TICK, self._hold_until)
            await asyncio.sleep(end - self.wall())
            wall = self.wall()
            if self._careful and wall - end > _BUSY:
                self._calm_until = wall + _RECOVERY
            passed, last = min(wall - max(last, self._hold_until), _MAX_LAG), wall
            if passed > 0 and self.may_move():
                self.step(self.sim.now + passed * self.speed_at(wall))

    def speed_at(self, wall: float) -> float:
        """Highest speed, lower for some time after a late step."""
        return self.speed if wall >= self._calm_until else min(self.speed, CALM)

    def step(self, limit: float) -> None:
        """Move to ``limit``, but not beyond the end of any sleep nor beyond the first watch event."""
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
        due = [waiter for waiter in self._waiters if waiter[0] <= now]
        self._waiters = [waiter for waiter in self._waiters if waiter[0] > now]
        for _, future, _ in due:
            if not future.done():
                future.set_result(None)


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
            self._write("error sleep needs a time in seconds")
            return
        if self._sleeper is None or self._sleeper.until is not None:
            self._write("error an observer cannot sleep, and only one sleep at a time is possible")
        elif until <= self._lockstep.sim.now:
            self._send_time(self._lockstep.sim.now)
        else:
            self._sleeper.sleep(until, self._send_time)

    def _send_time(self, now: float) -> None:
        self._write(f"{now:.6f}")

    def _write(self, line: str) -> None:
        if not self._writer.is_closing():
            self._writer.write(line.encode() + b"\n")
