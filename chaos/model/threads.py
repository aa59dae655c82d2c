"""Threads that run in the context (:mod:`contextvars`) of their creator, to whose run their log records belong."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

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
