"""The same for many nodes: begun at one moment, or only at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Barrier
from typing import TypeVar

from chaos.model.ports import Clock

T = TypeVar("T")
R = TypeVar("R")
MAX_THREADS = 64  # threads at once where nothing must begin together
_POLL = 0.05  # seconds between two looks at what is still going on


def run_simultaneously(
    items: Sequence[T], do: Callable[[T], R], meanwhile: Callable[[Sequence[Future[R]]], None] | None = None
) -> list[R]:
    """``do`` of each item, a thread each, begun when the last of them is there; in the order of ``items``.

    ``meanwhile`` is called in this thread. Raises what the first in order raised, after the end of all.
    """
    ready = Barrier(len(items))

    def begin(item: T) -> R:
        ready.wait()
        return do(item)

    with ThreadPoolExecutor(len(items)) as pool:
        going = [pool.submit(begin, item) for item in items]
        if meanwhile:
            meanwhile(going)
    return [future.result() for future in going]


def run_concurrently(items: Sequence[T], do: Callable[[T], R], clock: Clock) -> list[R]:
    """As :func:`together`, not begun at one moment; ``do`` may sleep on ``clock``, so that its time goes on."""
    if len(items) == 1:
        return [do(items[0])]
    with ThreadPoolExecutor(min(len(items), MAX_THREADS)) as pool:
        going = [pool.submit(do, item) for item in items]
        while wait(going, _POLL).not_done:
            clock.sleep(_POLL)
    return [future.result() for future in going]
