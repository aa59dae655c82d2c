"""The stream of a watch to a client in this process: each frame is handed over as it is written."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Protocol

from aiohttp import web

from chaos.lab.direct.tasks import Suspend
from chaos.lab.http.watch_stream import StreamFaults


class Watcher(Protocol):
    """The client of a watch."""

    def receive(self, data: bytes) -> None:
        """A piece of the body."""

    def end(self, *, is_cut: bool) -> None:
        """Nothing more comes; ``is_cut``: the connection was lost, and the response has no end."""


class _Flag:
    """Implements Flag in the tasks of this process."""

    def __init__(self) -> None:
        self.is_set = False
        self._waiting: list[Callable[[], object]] = []

    def set(self) -> None:
        self.is_set = True
        waiting, self._waiting = self._waiting, []
        for resume in waiting:
            resume()

    async def wait(self) -> None:
        if not self.is_set:
            await self

    def __await__(self) -> Generator[Suspend, None, None]:
        yield self._suspend

    def _suspend(self, resume: Callable[[], object]) -> Callable[[], object]:
        self._waiting.append(resume)
        return lambda: self._waiting.remove(resume)


class DirectStream:
    """Implements EventStream; what the client does not read it keeps itself."""

    def __init__(self, watcher: Watcher, faults: StreamFaults) -> None:
        self.response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self.done = _Flag()
        self._watcher, self._faults = watcher, faults

    def write(self, data: bytes) -> None:
        if self.done.is_set or self._faults.fault:
            return
        for piece in self._faults.pieces(data):
            self._watcher.receive(piece)
        if self._faults.ends:
            self.done.set()

    async def write_all(self, frames: Iterable[bytes]) -> None:
        for data in frames:
            self.write(data)

    def expire(self) -> None:
        if self._faults.may_expire:
            self.done.set()

    async def finish(self) -> None:
        self._watcher.end(is_cut=self._faults.ends_cut)
