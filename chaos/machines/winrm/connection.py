"""Connections whose host is verified before anything is sent."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPResponse, RemoteDisconnected
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from chaos.core.errors import Refused
from chaos.machines.winrm.endpoint import Endpoint, certificate_key

VerifyCertificate = Callable[[str], None]
_UNAUTHORIZED = 401
_CHALLENGE = re.compile(r"\b(?:Negotiate|NTLM|Kerberos|CredSSP) +[A-Za-z0-9+/]", re.IGNORECASE)


class ConnectionFailed(Exception):
    """No connection was opened, for the reason in its cause: nothing was sent."""


class LoginInterrupted(ConnectionFailed):
    """The connection was lost during a login, which cannot continue on another connection."""


class VerifyingAdapter(HTTPAdapter):
    """Keeps one connection at a time. The endpoint configures TLS; ``verify`` gets each certificate's SHA-256.

    The answer to a challenge is sent on the same connection, or not at all.
    """

    def __init__(self, endpoint: Endpoint, verify: VerifyCertificate) -> None:
        self._endpoint, self._verify = endpoint, verify
        self._context = endpoint.tls_context() if endpoint.scheme == "https" else None
        self._answers_challenge = False
        super().__init__(pool_connections=1, pool_maxsize=1)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **pool_kwargs: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, **pool_kwargs)
        self.poolmanager.pool_classes_by_scheme = _pools(self._check_login, self._verify_peer)

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request. May also raise LoginInterrupted."""
        try:
            answer = super().send(request, *args, **kwargs)
        finally:
            self._answers_challenge = False
        challenge = _CHALLENGE.search(answer.headers.get("WWW-Authenticate", ""))
        self._answers_challenge = answer.status_code == _UNAUTHORIZED and challenge is not None
        return answer

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: Any, cert: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        if self._context is None:
            return host, {}
        return host, {"ssl_context": self._context, "server_hostname": self._endpoint.hostname or None}

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Does nothing: the TLS context already verifies the certificate."""

    def _check_login(self) -> None:
        """Raises LoginInterrupted if a login would continue on a different connection than it began on."""
        if self._answers_challenge:
            raise LoginInterrupted

    def _verify_peer(self, certificate: bytes) -> None:
        """Raises Refused for a certificate that is not the pinned one."""
        found, pinned = hashlib.sha256(certificate).hexdigest(), self._endpoint.fingerprint
        if pinned and found != pinned:
            raise Refused(
                f"{self._endpoint.label} presents the certificate SHA256:{found}, but the inventory has"
                f" SHA256:{pinned}; the connection may be intercepted",
                hint="compare it with the certificate of the listener on the host's console; if it was renewed, correct"
                " fingerprint in options",
            )
        self._verify(certificate_key(found))


class _WholeLines(io.BufferedReader):
    """Lines of an answer. Raises RemoteDisconnected where the connection ends within the head or in a line of it."""

    _has_begun = False

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        is_cut = not line.endswith(b"\n") and len(line) != size
        if is_cut and (line or self._has_begun):
            raise RemoteDisconnected("the connection ended within an answer")
        self._has_begun = True
        return line


class _WholeAnswer(HTTPResponse):
    """An answer whose head has come to its end: http.client takes one that is cut off for one with fewer headers.

    A 401 without its headers would pass as a rejected login, and TLS that has ended makes requests-ntlm fail.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fp = _WholeLines(self.fp.detach())


def _pools(check_login: Callable[[], None], verify_peer: Callable[[bytes], None]) -> dict[str, type]:
    """Classes of connection pools by scheme."""

    class PlainConnection(HTTPConnection):
        response_class = _WholeAnswer

        def connect(self) -> None:
            check_login()
            with _nothing_sent():
                super().connect()

    class TlsConnection(HTTPSConnection):
        response_class = _WholeAnswer

        def connect(self) -> None:
            check_login()
            with _nothing_sent():
                super().connect()
                sock: Any = self.sock
                verify_peer(sock.getpeercert(binary_form=True))
            self.is_verified = True  # also by a fingerprint alone

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = PlainConnection

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = TlsConnection

    return {"http": PlainPool, "https": TlsPool}


@contextmanager
def _nothing_sent() -> Iterator[None]:
    """Mark failures to open a connection: urllib3 and requests report them like failures of a request."""
    try:
        yield
    except (OSError, HTTPError) as error:
        raise ConnectionFailed from error
