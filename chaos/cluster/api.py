"""The API server as an open connection has it: its ports, open watches, and pools for whole responses.

A request and its response are bounded in time and size.
"""

# ruff: noqa: PLC0415 - urllib3 is slow to import

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import urlsplit

from chaos.cluster.connections import limit_rest
from chaos.cluster.credentials import Headers
from chaos.cluster.errors import RESET, KubeRejected, KubeUnreachable, from_exception
from chaos.cluster.exec_stream import ExecStream
from chaos.cluster.pools import Pool
from chaos.core.errors import NodefallError
from chaos.core.labels import FIELD_MANAGER
from chaos.core.ports import KubeApi, Response

CHUNK_BYTES = 65536
Timeouts = tuple[float, float]  # wall seconds: to connect, to respond
_MAX_BODY_BYTES = 512 << 20  # lists come in pages
_log = logging.getLogger(__name__)
_FIELD_WRITERS = ("POST", "PUT", "PATCH")  # methods that write fields


def exchange(pool: Pool, method: str, url: str, data: bytes | None, headers: Headers, timeouts: Timeouts) -> Response:
    """One request and its response, whatever the status. Raises KubeUnreachable, KubeRejected."""
    begin = time.monotonic()
    try:
        response = send(pool, method, url, data, headers, timeouts)
        answer = Response(response.status, read_body(response, url, timeouts[1]), dict(response.headers))
    except NodefallError as error:
        _log.debug("%s %s failed after %.3f s: %s", method, url, time.monotonic() - begin, error.message)
        raise
    _log.debug("%s %s: %d in %.3f s", method, url, answer.status, time.monotonic() - begin)
    return answer


def send(pool: Pool, method: str, url: str, data: bytes | None, headers: Headers, timeouts: Timeouts) -> Any:
    """Send a request; the response with its body still to be read. Raises KubeUnreachable."""
    from urllib3 import HTTPHeaderDict, Timeout
    from urllib3.exceptions import HTTPError

    sent = HTTPHeaderDict()
    for name, value in headers:
        sent.add(name, value.encode().decode("latin-1"))  # as Go, UTF-8
    try:
        return pool.manager.request(
            method,
            url,
            body=data,
            headers=sent,
            timeout=Timeout(connect=timeouts[0], read=timeouts[1]),
            retries=False,
            redirect=False,
            preload_content=False,
        )
    except (HTTPError, OSError) as error:
        raise from_exception(error, _origin(url), pool.proxy) from error


def read_body(response: Any, url: str, timeout: float) -> bytes:
    """Read the whole body within ``timeout`` wall seconds. Raises KubeUnreachable, KubeRejected."""
    from urllib3.exceptions import HTTPError

    limit_rest(response, timeout)
    body = bytearray()
    try:
        for chunk in response.stream(CHUNK_BYTES):
            body += chunk
            if len(body) > _MAX_BODY_BYTES:
                response.close()
                message = f"{_origin(url)}: the response is longer than {_MAX_BODY_BYTES >> 20} MiB"
                raise KubeRejected(response.status, message)
    except (HTTPError, OSError, ValueError) as error:  # ValueError: a chunk of a negative size
        response.close()
        raise from_exception(error, _origin(url)) from error
    response.release_conn()
    return bytes(body)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


class WatchStream:
    """An open watch: a context manager over raw chunks. Raises KubeUnreachable and, on entry, KubeRejected."""

    def __init__(self, connect: Callable[[], Any], where: str) -> None:
        self._connect = connect
        self._where = where
        self._response: Any = None
        self._sock: Any = None
        self._aborted = threading.Event()
        self._input = select.poll()

    def __enter__(self) -> Iterator[bytes]:
        self._response = self._connect()
        self._sock = getattr(self._response.connection, "sock", None)
        if self._sock is not None:
            self._input.register(self._sock, select.POLLIN)
        return self._chunks()

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def has_input(self) -> bool:
        """Whether the connection has bytes that this process has not read, or has ended. For the thread that reads."""
        return bool(self._input.poll(0))

    def abort(self) -> None:
        """End the watch from another thread; its reader gets a KubeUnreachable."""
        self._aborted.set()
        if self._response is not None:
            with suppress(ValueError, RuntimeError, OSError):  # the response has just ended by itself
                self._shut_down()

    def _shut_down(self) -> None:
        outer = getattr(self._sock, "socket", None)  # the connection to a proxy, of urllib3's TLS in its TLS
        if outer is None:
            self._response.shutdown()
        else:
            outer.shutdown(socket.SHUT_RDWR)

    def _chunks(self) -> Iterator[bytes]:
        from urllib3.exceptions import HTTPError

        chunks = self._response.stream(CHUNK_BYTES)
        while not self._aborted.is_set():
            try:
                chunk = next(chunks, None)
            except (HTTPError, OSError, ValueError) as error:  # ValueError: read after the shutdown by abort
                if self._aborted.is_set():
                    break
                raise from_exception(error, self._where) from error
            if self._aborted.is_set():  # bytes read after a shutdown are not reliable
                break
            if chunk is None:
                return
            yield chunk
        raise KubeUnreachable(RESET, f"{self._where}: the watch was aborted")


class WatchApi(KubeApi, Protocol):
    """The API as the observers use it: watches that can be aborted, consistent reads, and a health probe."""

    def stream(self, path: str, query: Mapping[str, str]) -> WatchStream: ...

    def metadata(self, path: str, query: Mapping[str, str]) -> Response:
        """GET a list as PartialObjectMetadataList. Raises KubeUnreachable."""

    def probe(self, timeout: float) -> float | None:
        """The server's time in whole seconds, if it sends one.

        Raises KubeUnreachable or KubeRejected unless the server reports in ``timeout`` wall seconds that it is ready.
        """


def with_field_manager(method: str, query: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The query that names the writer of fields explicitly, as proxies change the User-Agent."""
    return {**(query or {}), "fieldManager": FIELD_MANAGER} if method in _FIELD_WRITERS else query


class ExecApi(Protocol):
    """The API server as what runs programs in containers. Implemented by ApiClient."""

    def exec(self, pod_path: str, argv: Sequence[str], container: str, timeout: float) -> ExecStream:
        """Start ``argv`` in a container of the pod at an API path; connects within ``timeout`` wall seconds.

        Raises KubeUnreachable and KubeRejected; then nothing was started.
        """


class ClusterApi(WatchApi, Protocol):
    """The API server, its kubelets and its control plane. Implemented by ApiClient."""

    @property
    def server(self) -> str:
        """URL of the API server."""

    @property
    def ca_digest(self) -> str:
        """SHA-256 of the certificate authority that is trusted. Raises NodefallError if it cannot be read."""

    @property
    def risks(self) -> tuple[str, ...]:
        """Weaknesses of the connection, for people."""

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout: float = ...,
        accept: str = ...,
    ) -> Response:
        """One request and its response, of any status. Raises KubeUnreachable."""

    def set_kubelet_certificate_source(self, certificate: Callable[[str], str]) -> None:
        """``certificate`` returns the PEM that the kubelet at an address serves with, read on its host."""

    def component(self, url: str) -> Response:
        """GET from a control plane component. Raises KubeUnreachable."""
