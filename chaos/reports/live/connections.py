"""Connections of the live page: those without a token never take the place of those with one.

A stranger has two seconds to show the token. Of too many strangers the one that came first is disconnected, so that
whoever has the token is answered even while others open connections as fast as they can.
"""

from __future__ import annotations

import asyncio

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

MAX_STRANGERS, MAX_GUESTS = 48, 96  # descriptors of the run's process are not for clients to use up
STRANGER_SECONDS = 2.0
_ACCEPT_SECONDS = 0.05  # in which an accepted connection gets its transport


class Connections:
    """All connections of one server; a factory of their protocols for the event loop."""

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server, self._loop = server, loop
        self._strangers: dict[RequestHandler, asyncio.TimerHandle] = {}  # in the order in which they came
        self._guests: set[RequestHandler] = set()

    def __call__(self) -> asyncio.Protocol:
        """The protocol of a new connection."""
        if len(self._strangers) >= MAX_STRANGERS:
            self._disconnect(next(iter(self._strangers)))
        protocol = self._server()
        self._strangers[protocol] = self._loop.call_later(STRANGER_SECONDS, self._disconnect, protocol)
        return protocol

    def admit(self, protocol: RequestHandler) -> bool:
        """Keep the connection of a request that had the token. False if there are too many of these."""
        if protocol in self._guests:
            return True
        self._guests = {guest for guest in self._guests if guest.transport is not None}
        if len(self._guests) >= MAX_GUESTS:
            return False
        if timer := self._strangers.pop(protocol, None):
            timer.cancel()
        self._guests.add(protocol)
        return True

    def _disconnect(self, protocol: RequestHandler) -> None:
        if timer := self._strangers.pop(protocol, None):
            timer.cancel()
        if protocol in self._guests:
            return
        if protocol.transport is None:
            if timer:  # it has just been accepted, unless it has ended
                self._loop.call_later(_ACCEPT_SECONDS, self._disconnect, protocol)
            return
        protocol.transport.abort()
