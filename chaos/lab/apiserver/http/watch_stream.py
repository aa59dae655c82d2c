"""The answer to a watch as it flows: raw chunks on the transport, given up when the client does not read."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from aiohttp import web

from chaos.lab.apiserver.http.fault_injection import FaultInjector

_MAX_BACKLOG = 16 << 20  # bytes that a watcher may be behind before it is dropped
_MAX_BUFFER = 1 << 18  # bytes that a transport may have before it gets more
_MAX_FRAMES = 64  # frames that it gets at once
_CLOSE_TIMEOUT = 10.0  # wall seconds in which a client must take the end of its watch
_POLL_INTERVAL = 0.01  # wall seconds between two looks whether a client has read on


class WatchStream:
    """Chunks of one watch. ``over`` is set when nothing more will be written."""

    def __init__(self, response: web.StreamResponse, transport: asyncio.Transport, bad: FaultInjector) -> None:
        self.response, self._transport, self._fault_injector = response, transport, bad
        self.done = asyncio.Event()
        self._pending: deque[bytes] = deque()
        self._size = 0  # of what is pending
        self._flush_handle: asyncio.Handle | None = None  # the next flush
        self._loop = asyncio.get_running_loop()
        self._fault = ""

    def write(self, data: bytes) -> None:
        """A frame; it is sent in this turn of the loop together with others.

        A client that does not read gets no more, and an end, as the API server does (cacheWatcher.add). Until then
        its frames wait here, where those who wait for the same share them; a transport would keep copies.
        """
        if self.done.is_set() or self._fault:
            return
        if self._fault_injector.enabled:
            data = self._inject_fault(data)
        self._pending.append(data)
        self._size += len(data)
        if self._size > _MAX_BACKLOG:
            self._drop()
        elif self._flush_handle is None:
            self._flush_handle = self._loop.call_soon(self._flush)

    async def write_all(self, frames: Iterable[bytes]) -> None:
        """Frames, however many, at the pace at which the client takes them."""
        for data in frames:
            self.write(data)
            if self._size >= _MAX_BUFFER:
                await self._drain()

    def expire(self) -> None:
        """The time of the watch is over."""
        if self._fault != "half-open" and "endless" not in self._fault_injector.enabled:
            self.done.set()

    async def finish(self) -> None:
        """End the answer. A client that does not take that is cut off."""
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self._drain()
                if self._fault not in ("half-open", "cut") and not self._transport.is_closing():
                    await self.response.write_eof()
                    return
        except TimeoutError:
            pass
        self._transport.abort()

    def _flush(self) -> None:
        """Hand over what is pending, in pieces that the client takes."""
        if self._flush_handle is not None:
            self._flush_handle.cancel()
            self._flush_handle = None
        if self._transport.is_closing():
            self._drop()
        while self._pending and self._transport.get_write_buffer_size() <= _MAX_BUFFER:
            piece: list[bytes] = []
            while self._pending and len(piece) < _MAX_FRAMES:
                piece.append(self._pending.popleft())
                self._size -= len(piece[-1])
            self._transport.write(b"".join(piece))
        if self._pending:
            self._flush_handle = self._loop.call_later(_POLL_INTERVAL, self._flush)

    def _drop(self) -> None:
        """The client is gone, or gets no more."""
        self._pending.clear()
        self._size = 0
        self.done.set()

    async def _drain(self) -> None:
        """Until all is handed over."""
        self._flush()
        while self._pending:
            await asyncio.sleep(_POLL_INTERVAL)

    def _inject_fault(self, data: bytes) -> bytes:
        """The chunk of one event as the switches have it."""
        self._fault = self._fault_injector.next_fault()
        if self._fault in ("cut", "torn", "end"):
            self.done.set()
        if self._fault in ("half-open", "end"):
            return b""
        line = data.partition(b"\r\n")[2][:-2]
        if self._fault:
            line = line[: len(line) // 2]
        return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in self._fault_injector.split_chunks(line))


async def open_stream(request: web.Request, bad: FaultInjector) -> WatchStream:
    """Begin the answer to a watch. Raises ConnectionResetError if the client is gone."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the client is gone")
    assert isinstance(transport, asyncio.Transport)  # noqa: S101
    return WatchStream(response, transport, bad)
