"""Runs an operation on many nodes: started simultaneously, or merely concurrently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from chaos.core.ports import Clock
from chaos.core.threads import SYSTEM_THREADS, Threads

T = TypeVar("T")
R = TypeVar("R")
MAX_THREADS = 64  # concurrent threads where nothing must begin simultaneously
_POLL = 0.05  # seconds between two polls of the threads


def run_simultaneously(
    items: Sequence[T],
    do: Callable[[T], R],
    meanwhile: Callable[[Sequence[Future[R]]], None] | None = None,
    threads: Threads = SYSTEM_THREADS,
) -> list[R]:
    """Call ``do`` for each item in its own thread, once all threads are ready. Results are in the order of ``items``.

    ``meanwhile`` is called in the calling thread. After all have ended, raises what the first in order raised.
    """
    ready = threads.barrier(len(items))

    def begin(item: T) -> R:
        ready()
        return do(item)

    with threads.pool(len(items)) as pool:
        futures = [pool.submit(begin, item) for item in items]
        if meanwhile:
            meanwhile(futures)
    return [future.result() for future in futures]


def run_concurrently(items: Sequence[T], do: Callable[[T], R], clock: Clock) -> list[R]:
    """Like :func:`run_simultaneously`, without a common start; ``do`` may sleep on ``clock``, whose time continues."""
    if len(items) == 1:
        return [do(items[0])]
    with clock.threads.pool(min(len(items), MAX_THREADS)) as pool:
        futures = [pool.submit(do, item) for item in items]
        clock.settle()
        while not clock.threads.wait(futures, _POLL):
            clock.sleep(_POLL)
            clock.settle()
    return [future.result() for future in futures]


def await_briefly(futures: Sequence[Future[R]], clock: Clock, seconds: float) -> None:
    """Wait for the futures, at most ``seconds``: in cluster time if it waits for this process, else in wall time."""
    wait = clock.threads.wait
    if not clock.settle():
        wait(futures, seconds)
        return
    end = clock.now() + seconds
    while not wait(futures, 0) and clock.now() < end and clock.sleep(_POLL):
        clock.settle()
