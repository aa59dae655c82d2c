"""Watch streams on a slow transport."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from chaos.lab.http.fault_injection import FaultInjector
from chaos.lab.http.watch_stream import WatchStream

KIB = 1024


class Transport(asyncio.Transport):
    """Transport whose client reads only on request."""

    def __init__(self) -> None:
        super().__init__()
        self.taken, self.waiting, self.most, self.aborted = b"", b"", 0, False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.waiting += bytes(data)
        self.most = max(self.most, len(self.waiting))

    def read(self) -> None:
        self.taken, self.waiting = self.taken + self.waiting, b""

    def get_write_buffer_size(self) -> int:
        return len(self.waiting)

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


def play(scene: Callable[[WatchStream, Transport], Awaitable[None]]) -> None:
    async def run() -> None:
        transport = Transport()
        await scene(WatchStream(web.StreamResponse(), transport, FaultInjector()), transport)

    asyncio.run(asyncio.wait_for(run(), 30))


FRAMES = [b"%06d" % number + b"x" * 10 * KIB for number in range(1000)]


def test_a_slow_client_gets_every_frame_in_order_and_its_transport_holds_little() -> None:
    async def scene(stream: WatchStream, transport: Transport) -> None:
        for frame in FRAMES:
            stream.write(frame)
        assert not transport.waiting  # frames of one turn are sent together
        while len(transport.taken) < sum(map(len, FRAMES)):
            await asyncio.sleep(0.001)
            transport.read()
        assert transport.taken == b"".join(FRAMES)
        assert transport.most < 1024 * KIB
        assert not stream.done.is_set()

    play(scene)


def test_a_client_that_is_too_far_behind_is_dropped() -> None:
    async def scene(stream: WatchStream, transport: Transport) -> None:
        for _ in range(2):
            for frame in FRAMES:
                stream.write(frame)
            await asyncio.sleep(0.05)
        assert stream.done.is_set()
        stream.write(b"more")
        assert transport.most < 1024 * KIB
        assert b"more" not in transport.waiting

    play(scene)


@pytest.mark.parametrize("gone", [False, True])
def test_initial_events_are_sent_at_the_clients_pace(gone: bool) -> None:
    async def scene(stream: WatchStream, transport: Transport) -> None:
        sending = asyncio.create_task(stream.write_all(FRAMES * 3))  # more than the maximum backlog
        while not sending.done():
            await asyncio.sleep(0.001)
            transport.read()
            if gone and len(transport.taken) > 1024 * KIB:
                transport.abort()
        await sending
        while not gone and len(transport.taken) < 3 * sum(map(len, FRAMES)):
            await asyncio.sleep(0.001)
            transport.read()
        assert stream.done.is_set() == gone
        assert gone or transport.taken == b"".join(FRAMES * 3)

    play(scene)
