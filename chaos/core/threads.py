"""Threads that run in the context (:mod:`contextvars`) of their creator, to whose run their log records belong.

What sleeps on a clock makes its threads by ``Clock.threads``: where time is simulated, they take turns.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class ContextThread(threading.Thread):
    """A daemon thread that calls ``target`` in a copy of the context in which this object was created."""

    def __init__(self, target: Callable[[], object], name: str | None = None) -> None:
        super().__init__(target=copy_context().run, args=(target,), name=name, daemon=True)


class ContextPool(ThreadPoolExecutor):
    """A thread pool that calls functions in a copy of the context in which they were submitted."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        context = copy_context()

        def call(*positional: Any, **named: Any) -> T:
            return context.run(fn, *positional, **named)

        return super().submit(call, *args, **kwargs)


class Startable(Protocol):
    """A thread that was not started yet."""

    def start(self) -> None: ...


class Threads(Protocol):
    """Threads that run in the time of the same clock."""

    def thread(self, target: Callable[[], object], name: str) -> Startable:
        """A thread that calls ``target`` once, and keeps no process alive."""

    def pool(self, size: int) -> Executor:
        """A pool of at most ``size`` threads. Leaving its context waits for all submitted calls."""

    def wait(self, futures: Sequence[Future[Any]], seconds: float) -> bool:
        """Wait at most ``seconds`` of wall time for ``futures``; whether all are done.

        Where time is simulated: until no one can continue before time does.
        """

    def pause(self, seconds: float) -> None:
        """Let the others continue for ``seconds`` of wall time; where time is simulated, until it would move."""

    def barrier(self, parties: int) -> Callable[[], object]:
        """A function that returns once ``parties`` threads have called it."""

    def cpu_time(self) -> float:
        """CPU seconds that the calling thread has used; where time is simulated, a call costs none."""


class SystemThreads:
    """Threads of this process, all at once."""

    def thread(self, target: Callable[[], object], name: str) -> ContextThread:
        return ContextThread(target, name)

    def pool(self, size: int) -> ContextPool:
        return ContextPool(size)

    def wait(self, futures: Sequence[Future[Any]], seconds: float) -> bool:
        return not wait(futures, seconds).not_done

    def pause(self, seconds: float) -> None:
        threading.Event().wait(seconds)

    def barrier(self, parties: int) -> Callable[[], object]:
        return threading.Barrier(parties).wait

    def cpu_time(self) -> float:
        return time.thread_time()


SYSTEM_THREADS = SystemThreads()
