"""Coroutines of handlers and programs, driven by the simulated clock alone; everything happens in its one thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextlib import nullcontext
from typing import Any, Generic, TypeVar, cast

from chaos.lab.sim import SimClock

T = TypeVar("T")
_Resume = Callable[[], object]
Suspend = Callable[[_Resume], Callable[[], object]]  # registers what resumes a task; returns what takes that back


class Cancelled(BaseException):
    """The task was cancelled: its machine is off, or its client has gone."""


class Task(Generic[T]):
    """A coroutine that runs at once as far as it can, and later whenever what it waits for has come."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Any], object]] = []
        self._forget: Callable[[], object] | None = None  # takes back what would resume it
        self._is_cancelled = False
        self.done = False
        self._advance(None)

    def result(self) -> T:
        """The result of a task that is done. Raises what ended it, Cancelled among it."""
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def cancel(self) -> None:
        """End the task where it waits, or as soon as it does. No effect on one that is done."""
        self._is_cancelled = True
        if not self.done and self._forget is not None:
            self._forget()
            self._advance(Cancelled())

    def add_done_callback(self, call: Callable[[Any], object], /) -> None:
        """Call ``call`` with the task when it is done, now if it is."""
        if self.done:
            call(self)
        else:
            self._callbacks.append(call)

    def __await__(self) -> Generator[Suspend, None, T]:
        if not self.done:
            yield self._suspend_for
        return self.result()

    def _suspend_for(self, resume: _Resume) -> Callable[[], object]:
        def call(_: Any) -> None:
            resume()

        self._callbacks.append(call)
        return lambda: self._callbacks.remove(call)

    def _advance(self, error: Cancelled | None = None) -> None:
        self._forget = None
        try:
            suspend = self._coroutine.throw(error) if error else self._coroutine.send(None)
            while self._is_cancelled:
                suspend = self._coroutine.throw(Cancelled())
        except StopIteration as end:
            self._value = end.value
        except (Exception, Cancelled) as failure:  # noqa: BLE001 - raised by result()
            self._error = failure
        else:
            self._forget = suspend(self._advance)
            return
        self.done = True
        for call in self._callbacks:
            call(self)


class _Until:
    """Waits for a simulated time."""

    def __init__(self, sim: SimClock, until: float) -> None:
        self._sim, self._until = sim, until

    def __await__(self) -> Generator[Suspend, None, None]:
        yield lambda resume: self._sim.at(self._until, resume).cancel


class SimWaits:
    """Implements ``chaos.lab.sim.waits.Waits``: time moves only while nothing else can happen, so nothing stops it."""

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self._nothing: nullcontext[None] = nullcontext()

    def request(self) -> nullcontext[None]:
        return self._nothing

    def subrequest(self) -> nullcontext[None]:
        return self._nothing

    def suspend_request(self) -> nullcontext[None]:
        return self._nothing

    def hold_for_new_tasks(self) -> None:
        """No-op: a task runs as far as it can when it is created."""

    async def wait_until(self, until: float, *, background: bool = False) -> None:  # noqa: ARG002 - of the port
        if until > self._sim.now:
            await _Until(self._sim, until)

    def on_sent(self) -> None:
        """No-op: who listens to the store has heard it."""
