"""Connections of urllib3 whose answers end in time, and which remember addresses for when DNS dies."""

# ruff: noqa: PLC0415 - urllib3 is slow to import
from __future__ import annotations

import io
import logging
import socket
import time
from contextlib import suppress
from http.client import HTTPResponse
from typing import Any

_log = logging.getLogger(__name__)
_ADDRESSES: dict[str, str] = {}  # the last one of each name that was connected to


def end_in_time(manager: Any, *, remembers: bool) -> Any:
    """``manager``, for whose connections a time-out to read is that of the whole answer.

    With ``remembers`` they use the last address of a name that cannot be resolved any more: DNS may die with a fault,
    and undoing that needs the API server, whose certificate has the name.
    """
    manager.pool_classes_by_scheme = {
        scheme: type(pool.__name__, (pool,), {"ConnectionCls": _class(pool.ConnectionCls, remembers)})
        for scheme, pool in manager.pool_classes_by_scheme.items()
    }
    return manager


def bounded_session() -> Any:
    """A session of requests whose read time-out limits the whole answer."""
    from requests import Session
    from requests.adapters import HTTPAdapter

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
            super().init_poolmanager(*arguments, **options)
            end_in_time(self.poolmanager, remembers=False)

        def proxy_manager_for(self, proxy: Any, **options: Any) -> Any:
            return end_in_time(super().proxy_manager_for(proxy, **options), remembers=False)

    session = Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, Adapter())
    return session


def limit_rest(response: Any, seconds: float | None) -> None:
    """The rest of a response has ``seconds``; with None, only each read has those of the socket."""
    reader = getattr(response.connection, "reader", None)
    if reader is not None:
        reader.limit(seconds)


def _class(base: Any, remembers: bool) -> Any:
    bounded = _bounded_class(base)
    return _remembering_class(bounded) if remembers else bounded


def _bounded_class(base: Any) -> Any:
    class Bounded(base):  # type: ignore[misc]  # of a class that is imported late
        reader: _Reader | None = None

        def response_class(self, sock: Any, *arguments: Any, **options: Any) -> HTTPResponse:
            """A response class whose time-out limits the whole response: http.client applies it to each read."""
            response = HTTPResponse(sock, *arguments, **options)
            self.reader = _Reader(response.fp.detach(), sock)
            response.fp = io.BufferedReader(self.reader)
            return response

    return Bounded


class _Reader(io.RawIOBase):
    """Reads from a socket, until a deadline for all reads together."""

    def __init__(self, raw: io.RawIOBase, sock: Any) -> None:
        self._raw, self._sock = raw, sock
        self._usual = sock.gettimeout()
        self._deadline: float | None = None
        self.limit(self._usual)

    def limit(self, seconds: float | None) -> None:
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no whole answer in time")
            self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """At the end of the response: the connection may be used again."""
        with suppress(OSError):  # it was closed, too
            self._sock.settimeout(self._usual)
        self._raw.close()
        super().close()


def _remembering_class(base: Any) -> Any:
    from urllib3.exceptions import NameResolutionError

    class Remembering(base):  # type: ignore[misc]
        _dns_host: str

        def _new_conn(self) -> socket.socket:
            name = self._dns_host
            try:
                found: socket.socket = super()._new_conn()
            except NameResolutionError:
                if name not in _ADDRESSES:
                    raise
                _log.debug("%s cannot be resolved: its last address %s is used", name, _ADDRESSES[name])
                self._dns_host = _ADDRESSES[name]
                try:
                    return super()._new_conn()  # type: ignore[no-any-return]
                finally:
                    self._dns_host = name
            _ADDRESSES[name] = found.getpeername()[0]
            return found

    return Remembering
