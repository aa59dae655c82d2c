"""The server's thread: it begins before the run and ends with it, and the run waits for it at the end only, shortly."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import threading
import time
from types import TracebackType
from typing import Self

from aiohttp import web

from chaos.core.errors import NodefallError
from chaos.core.text import printable
from chaos.core.threads import ContextThread
from chaos.reports.live.access import Access, Address, is_loopback, listen, shown_host
from chaos.reports.live.feed import LiveFeed
from chaos.reports.live.handlers import Site, application
from chaos.reports.run.html import live_document

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 96
INTERVAL = 1.0  # seconds between two messages, at least
SHARE = 0.05  # of one CPU, at most, for putting messages together
_SLICE = 0.02  # seconds of CPU after which the server answers requests in between
_FAREWELL = 3.0  # seconds, at most, for open pages to fetch the final report
_START_SECONDS = 10.0


class LiveServer:
    """Serves the live page of a run for the length of a ``with`` block.

    The address is taken when this object is created, before the run begins. Raises UsageError if it cannot be.
    """

    def __init__(self, address: Address, feed: LiveFeed, title: str) -> None:
        self._socket = listen(address)
        self._feed = feed
        port = self._socket.getsockname()[1]
        self._base = f"http://{shown_host(address, self._socket)}:{port}/"
        access = Access(secrets.token_urlsafe(32), frozenset({address.host.lower(), socket.gethostname().lower()}))
        self._site = Site(live_document(title), access, feed, f"nodefall-{port}")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started, self._ended = threading.Event(), asyncio.Event()
        self._thread = ContextThread(self._serve, "live page")

    @property
    def url(self) -> str:
        """Where to open the page, with the token: print it once, and store it nowhere."""
        return f"{self._base}?token={self._site.access.token}"

    @property
    def is_private(self) -> bool:
        """Whether only this machine reaches the page."""
        return is_loopback(self._socket)

    def finish(self, report: str, words: str = "") -> None:
        """The end: open pages become the final report of the run, or say ``words`` without one.

        Waits a moment for them to fetch it.
        """
        if self._loop is None or not self._thread.is_alive():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._farewell(report, printable(words)), self._loop).result(_FAREWELL * 2)
        except (TimeoutError, RuntimeError) as error:  # the pages show less, the run is over anyway
            logger.warning("the live page did not end in time: %s", error)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._started.wait(_START_SECONDS) or self._loop is None:
            self._socket.close()
            raise NodefallError("the live page did not start", hint="see why with -v, or leave out --serve")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._loop is not None and self._thread.is_alive():
            if error is not None and not self._site.is_over:
                self.finish("", f"The run has ended without a report: {error}")
            try:
                self._loop.call_soon_threadsafe(self._ended.set)
            except RuntimeError:  # the loop has closed since
                logger.debug("the live page had ended")
            self._thread.join(_FAREWELL)
        self._socket.close()

    def _serve(self) -> None:
        """The thread. Whatever fails here ends the page, never the run."""
        try:
            asyncio.run(self._main())
        except Exception:
            logger.exception("the live page has failed")
        finally:
            self._feed.close()
            self._started.set()

    async def _main(self) -> None:
        runner = web.AppRunner(
            application(self._site), access_log=None, logger=logger, keepalive_timeout=15, shutdown_timeout=1
        )
        await runner.setup()
        server = runner.server
        loop = asyncio.get_running_loop()

        def protocol() -> asyncio.Protocol:
            is_full = server is None or len(server.connections) >= MAX_CONNECTIONS
            return _Full() if is_full or server is None else server()

        listening = await loop.create_server(protocol, sock=self._socket)
        self._loop = loop
        self._started.set()
        builder = asyncio.create_task(self._build())
        try:
            ended = asyncio.create_task(self._ended.wait())
            await asyncio.wait({ended, builder}, return_when=asyncio.FIRST_COMPLETED)
            if builder.done():
                builder.result()  # raises what it has failed with
        finally:
            builder.cancel()
            listening.close()
            await runner.cleanup()

    async def _build(self) -> None:
        """Put messages together, at intervals that keep the CPU time below the share."""
        while True:
            begin = time.thread_time()
            while self._feed.take(_SLICE):
                await asyncio.sleep(_SLICE)
            if self._site.streams:
                self._feed.publish()
            self._site.notify()
            await asyncio.sleep(max(INTERVAL, (time.thread_time() - begin) / SHARE))

    async def _farewell(self, report: str, words: str) -> None:
        site = self._site
        site.report, site.last_words, site.is_over = report, words, True
        site.notify()
        try:
            async with asyncio.timeout(_FAREWELL):
                while site.streams or site.awaited > 0:
                    await site.changed.wait()
        except TimeoutError:
            logger.debug("%d pages did not fetch the final report", site.awaited)


class _Full(asyncio.Protocol):
    """Closes a connection at once: descriptors of the run's process are not for clients to use up."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            transport.abort()
