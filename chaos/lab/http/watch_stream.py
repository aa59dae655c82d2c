"""Response stream of a watch: raw chunks on the transport, closed if the client does not read.

Within the process of its client, a watch has another stream (``chaos/lab/direct/requests.py``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from aiohttp import web

from chaos.lab.http.fault_injection import FaultInjector
from chaos.lab.http.messages import Request

_MAX_BACKLOG = 16 << 20  # bytes pending for a watcher before its stream is closed
_MAX_BUFFER = 1 << 18  # bytes in the transport's buffer up to which more are written
_MAX_FRAMES = 64  # frames per write
_CLOSE_TIMEOUT = 10.0  # wall seconds in which a client must read the end of its watch
_POLL_INTERVAL = 0.01  # wall seconds between two checks of the transport's buffer


class Flag(Protocol):
    """A flag of a stream, once set for ever. As asyncio.Event."""

    def set(self) -> None: ...

    async def wait(self) -> object: ...


class EventStream(Protocol):
    """Frames of one watch, on their way to its client. ``done`` is set when nothing more will be written."""

    @property
    def done(self) -> Flag: ...

    @property
    def response(self) -> web.StreamResponse: ...

    def write(self, data: bytes) -> None:
        """Queue a frame."""

    async def write_all(self, frames: Iterable[bytes]) -> None:
        """Write any number of frames at the pace of the client."""

    def expire(self) -> None:
        """End the watch because its time is up."""

    async def finish(self) -> None:
        """End the response."""


@runtime_checkable
class DirectRequest(Protocol):
    """A request that is made in this process."""

    def open_stream(self, faults: StreamFaults) -> EventStream:
        """The stream of a watch. Raises ApiError 406 for a request that reads none."""


class StreamFaults:
    """The injected faults of one stream. ``fault``: the one that it has, "" for none yet."""

    def __init__(self, injector: FaultInjector) -> None:
        self._injector, self.fault = injector, ""

    @property
    def ends_cut(self) -> bool:
        """Whether the client does not see the end of the response."""
        return self.fault in ("half-open", "cut")

    @property
    def may_expire(self) -> bool:
        return self.fault != "half-open" and "endless" not in self._injector.enabled

    def pieces(self, frame: bytes) -> list[bytes]:
        """What is sent of a frame, piece by piece, without the framing of HTTP."""
        line = frame.partition(b"\r\n")[2][:-2]
        if not self._injector.enabled:
            return [line]
        self.fault = self._injector.next_fault()
        if self.fault in ("half-open", "end"):
            return []
        return self._injector.split_chunks(line[: len(line) // 2] if self.fault else line)

    @property
    def ends(self) -> bool:
        """Whether nothing comes after the last frame."""
        return self.fault in ("cut", "torn", "end")


class WatchStream:
    """Implements EventStream on a connection."""

    def __init__(self, response: web.StreamResponse, transport: asyncio.Transport, faults: FaultInjector) -> None:
        self.response, self._transport, self._fault_injector = response, transport, faults
        self._faults = StreamFaults(faults)
        self.done = asyncio.Event()
        self._pending: deque[bytes] = deque()
        self._size = 0  # of pending frames
        self._flush_handle: asyncio.Handle | None = None  # of the next flush
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes) -> None:
        """Queue a frame; all frames queued in one turn of the event loop are sent together.

        A stream whose client does not read is closed, as by the API server (cacheWatcher.add). Until then frames are
        queued here, where watchers share them; the transport would copy them.
        """
        if self.done.is_set() or self._faults.fault:
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
        """Write any number of frames at the pace of the client."""
        for data in frames:
            self.write(data)
            if self._size >= _MAX_BUFFER:
                await self._drain()

    def expire(self) -> None:
        """End the watch because its time is up."""
        if self._faults.may_expire:
            self.done.set()

    async def finish(self) -> None:
        """End the response. Abort the connection of a client that does not read the end."""
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self._drain()
                if not self._faults.ends_cut and not self._transport.is_closing():
                    await self.response.write_eof()
                    return
        except TimeoutError:
            pass
        self._transport.abort()

    def _flush(self) -> None:
        """Write pending frames to the transport as far as its buffer permits."""
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
        """Drop pending frames and end the stream."""
        self._pending.clear()
        self._size = 0
        self.done.set()

    async def _drain(self) -> None:
        """Wait until no frames are pending."""
        self._flush()
        while self._pending:
            await asyncio.sleep(_POLL_INTERVAL)

    def _inject_fault(self, data: bytes) -> bytes:
        """Chunks of one event with the enabled faults."""
        pieces = self._faults.pieces(data)
        if self._faults.ends:
            self.done.set()
        return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


async def open_stream(request: Request, faults: FaultInjector) -> EventStream:
    """Start the response to a watch. Raises ConnectionResetError if the client has disconnected, ApiError 406."""
    if isinstance(request, DirectRequest):
        return request.open_stream(StreamFaults(faults))
    assert isinstance(request, web.Request)  # noqa: S101 - there are no other requests
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the client has disconnected")
    assert isinstance(transport, asyncio.Transport)  # noqa: S101
    return WatchStream(response, transport, faults)
