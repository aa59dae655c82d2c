"""The server's answers: the page, its events, and the one request that does something."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from chaos.reports.live.access import Access, Claim
from chaos.reports.live.feed import LiveFeed
from chaos.reports.run.html import LiveDocument

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
_FRAMES = "frame-ancestors 'none'"  # beside the policy in the report itself


@dataclass
class Site:
    """What is served. ``changed`` is set, and replaced, at every change; ``report``: the final one, "" before the end.

    ``last_words``: how the run ended, for pages that get no report.
    """

    document: LiveDocument
    access: Access
    feed: LiveFeed
    cookie: str
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
    """The application of a site: three addresses, behind one guard."""
    app = web.Application(middlewares=[_guard(site)], client_max_size=_BODY_BYTES)
    answers = _Answers(site)
    app.router.add_get("/", answers.page)
    app.router.add_get("/events", answers.events)
    app.router.add_post("/stop", answers.stop)
    return app


def _guard(site: Site) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        denial = site.access.denial(_claim(site, request))
        if denial:
            return web.Response(status=denial.status, text=f"{denial.why}\n", headers=_HEADERS)
        return await handler(request)

    return guard


def _claim(site: Site, request: web.Request) -> Claim:
    """The token is in the address only when the page is opened; the page takes it out."""
    scheme, _, header = request.headers.get("Authorization", "").partition(" ")
    given = header if scheme.lower() == "bearer" else request.cookies.get(site.cookie, "")
    if request.path == "/" and request.method == "GET":
        given = request.query.get("token", given)
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
        response.set_cookie(site.cookie, site.access.token, httponly=True, samesite="Strict", path="/")
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
    """Send what the client has not seen, until the run is over. Raises TimeoutError for one that reads nothing.

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
