"""Threads that take turns on a simulated clock: exactly one runs, and another one only when it waits.

The order is that in which they became ready, so the same calls give the same history. Time moves when all wait. A lock
must not be held over a wait: who wants it would keep the turn for ever.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from chaos.core.threads import ContextThread
from chaos.lab.facade import SimClock

P = ParamSpec("P")
T = TypeVar("T")
Register = Callable[[Callable[[], None]], object]


class TurnEnded(BaseException):
    """The turns are over: the thread that gets this must end."""


class _Turn:
    """One thread. ``blocks``: how often it has waited, so that what ends one wait does not end a later one.

    It runs on a worker, in the context of its creator; the one that made the turns has no target and no worker.
    """

    def __init__(self, target: Callable[[], object], name: str, idle: list[_Worker]) -> None:
        self.baton = threading.Lock()
        self.baton.acquire()
        self.name, self._target, self._context = name, target, copy_context()
        self._idle, self.worker = idle, cast("_Worker", None)  # set before it runs
        self.is_started = self.is_waiting = self.can_be_woken = False
        self.blocks = 0

    def run(self) -> None:
        self._context.run(self._target)

    def resume(self) -> None:
        if self.is_started:
            self.baton.release()
        else:
            self.is_started = True
            if self._idle:
                self._idle.pop().run(self)
            else:
                _Worker(self)


class _Worker:
    """A thread that runs one turn after another: most are so short that a thread for each would cost more."""

    def __init__(self, turn: _Turn) -> None:
        self._baton = threading.Lock()
        self._turn: _Turn | None = turn
        ContextThread(self._loop, turn.name).start()

    def run(self, turn: _Turn | None) -> None:
        """Run the turn; None ends the worker."""
        self._turn = turn
        self._baton.release()

    def _loop(self) -> None:
        thread = threading.current_thread()
        while self._baton.acquire() and (turn := self._turn):
            thread.name, turn.worker = turn.name, self
            turn.run()


class Turns:
    """Implements ``chaos.core.threads.Threads``. The thread that makes it has the first turn."""

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self._idle: list[_Worker] = []
        self._main = self._current = _Turn(lambda: None, "main", self._idle)
        self._main.is_started = True
        self._ready: deque[_Turn] = deque()
        self._alive: dict[_Turn, None] = {}  # in the order of their start
        self._failure: BaseException | None = None  # of the simulation
        self._is_over = False

    def thread(self, target: Callable[[], object], name: str) -> _Startable:
        return _Startable(self, target, name)

    def pool(self, size: int) -> Executor:  # noqa: ARG002 - a thread that waits its turn costs nothing
        return _Pool(self)

    def wait(self, futures: Sequence[Future[Any]], seconds: float) -> bool:  # noqa: ARG002 - no wall time passes
        while self._ready and not _are_done(futures):
            self.give_way()
        return _are_done(futures)

    def pause(self, seconds: float) -> None:  # noqa: ARG002 - no wall time passes
        self.block(self._sim.now)

    def cpu_time(self) -> float:
        return 0.0

    def barrier(self, parties: int) -> Callable[[], object]:  # noqa: ARG002 - all begin at the same instant anyway
        return lambda: None

    def start(self, target: Callable[[], object], name: str) -> None:
        """Let ``target`` run in a separate turn, the first one after all that are ready."""
        turn = _Turn(lambda: self._run(turn, target), name, self._idle)
        self._alive[turn] = None
        self._ready.append(turn)

    def give_way(self) -> None:
        """Let all others run that are ready; time does not move."""
        self._ready.append(self._current)
        self._switch()

    def block(self, until: float, register: Register | None = None, *, can_be_woken: bool = False) -> None:
        """Let the others and time go on until ``until``, or until the function is called that ``register`` is given."""
        turn = self._current
        turn.blocks += 1
        turn.is_waiting, turn.can_be_woken = True, can_be_woken
        end_wait = partial(self._end_wait, turn, turn.blocks)
        timer = self._sim.at(until, end_wait) if until != float("inf") else None
        if register is not None:
            register(end_wait)
        try:
            self._switch()
        finally:
            if timer is not None:
                timer.cancel()

    def wake(self) -> None:
        """End all waits that can be woken."""
        for turn in (self._main, *self._alive):
            if turn.is_waiting and turn.can_be_woken:
                self._end_wait(turn, turn.blocks)

    def join(self, futures: Sequence[Future[Any]]) -> None:
        """Wait, in simulated time, until all are done."""
        for future in futures:
            while not future.done():
                self.block(float("inf"), partial(_on_done, future))

    def close(self) -> None:
        """End all other threads."""
        self._is_over = True
        for turn in list(self._alive):
            if not turn.is_started:
                del self._alive[turn]
        self._ready.clear()
        while self._alive:
            self._ready.extend([next(iter(self._alive)), self._main])
            self._switch(is_end=True)
        for worker in self._idle:
            worker.run(None)

    def _end_wait(self, turn: _Turn, block: int) -> None:
        if turn.is_waiting and turn.blocks == block:
            turn.is_waiting = False
            self._ready.append(turn)

    def _run(self, turn: _Turn, target: Callable[[], object]) -> None:
        try:
            target()
        except TurnEnded:
            pass
        except BaseException as error:  # noqa: BLE001 - raised in the main turn: a thread's own would be lost
            self._fail(error)
        del self._alive[turn]
        self._idle.append(turn.worker)
        self._pass_on()

    def _switch(self, *, is_end: bool = False) -> None:
        """Pass the baton on, and wait until it comes back. Raises TurnEnded, or the failure of the simulation."""
        turn = self._current
        if self._is_over and not is_end:
            raise TurnEnded
        if self._pass_on() is not turn:
            self._take(turn)
        if turn is self._main and self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._is_over and not is_end:
            raise TurnEnded

    def _take(self, turn: _Turn) -> None:
        """Wait for the baton. Ctrl-C, which only the main thread gets, ends its wait once it has it."""
        while True:
            try:
                turn.baton.acquire()
            except KeyboardInterrupt as interrupt:
                self._interrupt(interrupt)
            else:
                return

    def _interrupt(self, interrupt: KeyboardInterrupt) -> None:
        """Give the main thread the next turn."""
        self._failure = interrupt
        self._main.is_waiting = False
        if self._main not in self._ready:
            self._ready.appendleft(self._main)

    def _pass_on(self) -> _Turn:
        before, turn = self._current, self._next()
        self._current = turn
        if turn is not before:
            try:
                turn.resume()  # from here on, this thread no longer has the turn
            except KeyboardInterrupt as interrupt:  # while the other thread started
                self._interrupt(interrupt)
        return turn

    def _next(self) -> _Turn:
        """The next turn; time moves while none is ready."""
        try:
            while not self._ready:
                self._sim.run_until(self._next_due())
        except BaseException as error:  # noqa: BLE001 - raised in the main turn, whichever turn moves time
            self._fail(error)
        return self._ready.popleft()

    def _next_due(self) -> float:
        due = self._sim.next_due()
        if due is None:
            raise RuntimeError("every thread waits, and nothing will happen")
        return due

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._main.is_waiting = False
        self._ready.clear()
        self._ready.append(self._main)


class _Startable:
    def __init__(self, turns: Turns, target: Callable[[], object], name: str) -> None:
        self._turns, self._target, self._name = turns, target, name

    def start(self) -> None:
        self._turns.start(self._target, self._name)


class _TurnFuture(Future[T]):
    """Waits for its result in turns."""

    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self._turns = turns

    def result(self, timeout: float | None = None) -> T:  # noqa: ARG002 - no wall time passes
        self._turns.join([self])
        return super().result(0)


class _Pool(Executor):
    """A turn for each call."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._futures: list[Future[Any]] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: _TurnFuture[T] = _TurnFuture(self._turns)
        self._futures.append(future)

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                value = fn(*args, **kwargs)
            except TurnEnded:
                raise
            except BaseException as error:  # noqa: BLE001 - the future's owner gets it
                future.set_exception(error)
            else:
                future.set_result(value)

        self._turns.start(call, "pool")
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            for future in self._futures:
                future.cancel()
        if wait:
            self._turns.join([future for future in self._futures if not future.cancelled()])


def _on_done(future: Future[Any], call: Callable[[], None]) -> None:
    future.add_done_callback(lambda _: call())


def _are_done(futures: Sequence[Future[Any]]) -> bool:
    return all(future.done() for future in futures)
