"""How the servers of a lab wait for simulated time, and what of theirs stops it.

Lockstep: simulated time moves only while all participants sleep, no request is in flight, and no client has work.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol

from chaos.lab.sim import SimClock
from chaos.lab.sim.clients import Clients, Identity, IdleLoop


class Waits(Protocol):
    """As Lockstep does them for clients in other processes, and SimWaits for one in this process."""

    def request(self) -> AbstractContextManager[None]:
        """Count a request in flight: time does not move."""

    def subrequest(self) -> AbstractContextManager[None]:
        """Count a concurrent part of the current request."""

    def suspend_request(self) -> AbstractContextManager[None]:
        """Let time move within a request that waits for its client."""

    def hold_for_new_tasks(self) -> None:
        """Stop time until the tasks created so far have run as far as they can."""

    async def wait_until(self, until: float, *, background: bool = False) -> None:
        """Wait for simulated time within a request; ``background``: no client waits for that request."""

    def on_sent(self) -> None:
        """Let clients receive a watch event before time moves."""


class Job(Protocol):
    """A program in the background."""

    def __await__(self) -> Generator[Any, Any, int]: ...

    def cancel(self) -> object: ...

    def add_done_callback(self, call: Callable[[Any], object], /) -> None: ...


TICK = 0.002  # wall seconds between two steps of time
LINGER = 0.05
SETTLE = 0.004  # wall seconds without a step of time after a watch event was written, so that it is received
CALM = 20.0  # highest speed on a busy machine; the two above are for this speed
_BUSY = 0.005  # wall seconds by which a step is late on a busy machine
_RECOVERY = 1.0  # wall seconds until a busy machine counts as idle again
_MAX_PAUSE = 0.032  # wall seconds between two inspections of clients that have something to do
_REQUEST: ContextVar[object] = ContextVar("request")  # of the current task
_MAX_LAG = 5 * TICK  # a stalled loop must not make time jump


class Sleeper:
    """A participant. ``until``: end of its sleep; None while it is awake. ``process``: what is observed for it.

    It counts as awake for some wall time after a sleep, if it is neither strict nor observed.
    """

    def __init__(self, lockstep: Lockstep, strict: bool) -> None:
        self._lockstep, self.strict = lockstep, strict
        self.process: Identity | None = None
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

    @property
    def is_observed(self) -> bool:
        clients = self._lockstep.clients
        return clients is not None and clients.observes(self.process)

    def blocks_time(self, wall: float) -> bool:
        """Whether time must not move because of this participant."""
        if self.until is not None:
            return False
        return self.strict or (wall - self.awake_since < self._lockstep.margin * LINGER and not self.is_observed)


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
        self._sent = 0  # times that something was sent that no one had asked for
        loop = asyncio.get_running_loop()
        self.wall = loop.time
        self.clients = Clients(loop) if isinstance(loop, IdleLoop) else None

    def notify(self) -> None:
        """Re-evaluate whether time may move: something has ended that clients may wait for."""
        self._wakeup.set()
        if self.clients:
            self.clients.notify()

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

    def on_sent(self) -> None:
        """Stop time after a watch event, or the end of a connection, until clients have handled it.

        While some client is not observed, for :data:`SETTLE` seconds, or longer at a higher speed.
        """
        self._sent += 1
        if self.clients:
            self.clients.notify()
        if not self._observes_all():
            self._hold_until = self.wall() + self.margin * SETTLE

    def may_move(self) -> bool:
        """Whether time may move: every awake participant waits for a request, and at least one waits for time."""
        if self.free or self._in_flight:
            return self.free
        wall, awake, waited_for = self.wall(), 0, len(self._waiters)
        for sleeper in self.sleepers:
            if sleeper.until is not None:
                waited_for += 1
            elif sleeper.blocks_time(wall):
                awake += 1
        requests = len({request for _, _, request in self._waiters if request is not None}) if awake else 0
        return awake <= requests and waited_for > 0

    async def run(self) -> None:
        """Move time until cancelled."""
        last, pause, longer = self.wall(), TICK, TICK / 2
        while True:
            if not self.may_move():
                self._wakeup.clear()
                with contextlib.suppress(TimeoutError):  # no notification comes when a sleeper's linger ends
                    async with asyncio.timeout(LINGER):  # wait_for of Python 3.11 can lose a cancellation
                        await self._wakeup.wait()
                last = self.wall()
                if self.clients:
                    self.clients.begin_wait()
                continue
            end = max(self.wall() + pause, self._hold_until)
            await asyncio.sleep(end - self.wall())
            wall = self.wall()
            if self._careful and wall - end > _BUSY:
                self._calm_until = wall + _RECOVERY
            passed = min(wall - max(last, self._hold_until), _MAX_LAG)
            if passed <= 0 or not self.may_move():
                last = wall
            elif await self._clients_are_idle():
                self.step(self.sim.now + passed * self.speed_at(wall))
                last, pause, longer = wall, TICK, TICK / 2
            else:
                is_short = pause <= TICK  # after each longer one: a client that polls in real time is idle in between
                longer = min(2 * longer, _MAX_PAUSE) if is_short else longer
                pause = longer if is_short else TICK

    async def _clients_are_idle(self) -> bool:
        """Whether time may move because no client has anything to do."""
        return self.free or not self.clients or (await self.clients.are_idle() and self.may_move())

    def speed_at(self, wall: float) -> float:
        """Highest speed, lower for some time after a late step, unless all clients' work is waited for anyway."""
        return self.speed if wall >= self._calm_until or self._observes_all() else min(self.speed, CALM)

    def _observes_all(self) -> bool:
        return bool(self.clients) and all(sleeper.is_observed for sleeper in self.sleepers)

    def step(self, limit: float) -> None:
        """Move to ``limit``, but not beyond the end of any sleep nor beyond the first watch event."""
        sent = self._sent
        wakings = [s.until for s in self.sleepers if s.until is not None]
        target = max(min([limit, *wakings, *(until for until, _, _ in self._waiters)]), self.sim.now)
        while not self.free and (due := self.sim.next_due()) is not None and due <= target:
            self.sim.run_until(max(due, self.sim.now))
            if self._sent != sent or self._in_flight:
                break
        else:
            self.sim.run_until(target)
        self._wake_due()

    def _wake_due(self) -> None:
        """Wake who is due, those that always hold time only when the others have nothing more to do."""
        now = self.sim.now
        due = [waiter for waiter in self._waiters if waiter[0] <= now]
        self._waiters = [waiter for waiter in self._waiters if waiter[0] > now]
        for _, future, _ in due:
            if not future.done():
                future.set_result(None)
        sleepers = [s for s in self.sleepers if s.until is not None and s.until <= now]
        in_turns = bool(self.clients) and not self.free
        first = [s for s in sleepers if not s.strict] if in_turns else []
        for sleeper in first or ([] if due and in_turns else sleepers):
            sleeper.wake()
        if due or sleepers:
            self.notify()
