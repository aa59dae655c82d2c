"""The live page's server, in a separate thread: it begins before the run and ends with it.

The run waits for it at the end only, shortly. It answers with the page, its events, and the one request that does
something.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from chaos.core.errors import NodefallError
from chaos.core.text import printable
from chaos.core.threads import ContextThread
from chaos.reports.live.access import Access, Address, Claim, Denial, is_loopback, listen, shown_host
from chaos.reports.live.connections import Connections
from chaos.reports.live.feed import LiveFeed
from chaos.reports.run.html import LiveDocument, live_document

MAX_STREAMS = 32
_QUIET_SECONDS = 15.0  # after which a comment shows that the connection still works
_STUCK_SECONDS = 20.0  # after which a client that reads nothing is disconnected
_BODY_BYTES = 1024
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_FRAMES = "frame-ancestors 'none'"  # next to the policy in the report itself


@dataclass
class Site:
    """What is served. ``changed`` is set, and replaced, at every change; ``report``: the final one, "" before the end.

    ``last_words``: how the run ended, for pages that get no report.
    """

    document: LiveDocument
    access: Access
    feed: LiveFeed
    connections: Connections | None = None
    report: str = ""
    last_words: str = ""
    is_over: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    streams: int = 0
    awaited: int = 0  # clients that have not fetched the final report yet

    def notify(self) -> None:
        """Wake all streams."""
        woken, self.changed = self.changed, asyncio.Event()
        woken.set()


def application(site: Site) -> web.Application:
    """The application of a site: three addresses below the token, or with the token in a header, behind one guard."""
    app = web.Application(middlewares=[_guard(site)], client_max_size=_BODY_BYTES)
    answers = _Answers(site)
    for prefix in ("/", f"/{site.access.token}/"):
        app.router.add_get(prefix, answers.page)
        app.router.add_get(f"{prefix}events", answers.events)
        app.router.add_post(f"{prefix}stop", answers.stop)
    return app


def _guard(site: Site) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        denial = site.access.denial(_claim(request))
        if not denial and site.connections and not site.connections.admit(request.protocol):
            denial = Denial(503, "too many connections are open")
        if denial:
            return web.Response(status=denial.status, text=f"{denial.why}\n", headers=_HEADERS)
        return await handler(request)

    return guard


def _claim(request: web.Request) -> Claim:
    """The token is in the path. In a cookie, the browser would send it to every other port of this machine, too."""
    scheme, _, header = request.headers.get("Authorization", "").partition(" ")
    first, *below = request.path.lstrip("/").split("/")
    given = header if scheme.lower() == "bearer" else first if below else ""
    return Claim(request.method, request.headers.get("Host", ""), request.headers.get("Origin"), given)


class _Answers:
    """Handlers of requests that the guard has admitted."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def page(self, _: web.Request) -> web.Response:
        site = self._site
        rules = _FRAMES if site.report else site.document.policy
        headers = {**_HEADERS, "Content-Security-Policy": rules}
        response = web.Response(text=site.report or site.document.html, content_type="text/html", headers=headers)
        if site.report:
            site.awaited -= 1
            site.notify()
        return response

    async def stop(self, request: web.Request) -> web.Response:
        site = self._site
        await request.read()
        if site.is_over or not site.feed.stop():
            return web.Response(status=409, text="the run cannot be stopped now\n", headers=_HEADERS)
        site.notify()
        return web.Response(status=202, text="the run stops and undoes its steps\n", headers=_HEADERS)

    async def events(self, request: web.Request) -> web.StreamResponse:
        site = self._site
        if site.streams >= MAX_STREAMS:
            return web.Response(status=503, text="too many pages are open\n", headers=_HEADERS)
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        site.streams += 1
        try:
            await response.prepare(request)
            await _send_events(site, response)
        except (TimeoutError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()  # it reads nothing: what is buffered for it is dropped
        finally:
            site.streams -= 1
            site.notify()
        return response


async def _send_events(site: Site, response: web.StreamResponse) -> None:
    """Send new data to a client until the run is over. Raises TimeoutError if the client reads nothing.

    Nothing is queued for a client: one that is slow gets its next events when it has taken these, or everything.
    """
    seen, said = 0, ""
    while not site.is_over:
        changed, events = site.changed, site.feed.since(seen)
        seen = site.feed.version
        if (state := site.feed.state()) != said:
            events, said = [("state", state), *events], state
        for name, data in events:
            await _write(response, f"event: {name}\ndata: {data}\n\n")
        try:
            await asyncio.wait_for(changed.wait(), _QUIET_SECONDS)
        except TimeoutError:
            await _write(response, ": still there\n\n")
    site.awaited += bool(site.report)
    ended = json.dumps({"report": bool(site.report), "words": site.last_words})
    await _write(response, f"event: end\ndata: {ended}\n\n")


async def _write(response: web.StreamResponse, text: str) -> None:
    await asyncio.wait_for(response.write(text.encode()), _STUCK_SECONDS)


logger = logging.getLogger(__name__)

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
        self._site = Site(live_document(title), access, feed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started, self._ended = threading.Event(), asyncio.Event()
        self._thread = ContextThread(self._serve, "live page")

    @property
    def url(self) -> str:
        """Where to open the page, with the token: print it once, and store it nowhere."""
        return f"{self._base}{self._site.access.token}/"

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
        assert runner.server is not None  # noqa: S101 - it is set up
        loop = asyncio.get_running_loop()
        self._site.connections = connections = Connections(runner.server, loop)
        listening = await loop.create_server(connections, sock=self._socket)
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
