"""HTTP to servers of the user, each answer bounded in time and size. No message has a path or a query in it.

Over requests, so that proxies and CAs of the environment are used (``HTTPS_PROXY``, ``REQUESTS_CA_BUNDLE``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from chaos.cluster.connections import bounded_session, limit_rest
from chaos.cluster.errors import OTHER, from_exception
from chaos.core.errors import NodefallError
from chaos.core.ports import Response

MAX_BYTES = 1_000_000  # of a body
_CHUNK = 65536  # bytes
_USER_AGENT = "nodefall"


class HttpFailed(NodefallError):
    """There was no answer, or it was too long or too slow."""


def http_request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    seconds: float = 10.0,
    with_body: bool = True,
) -> Response:
    """One request and its answer, of any status; a redirect is not followed. ``seconds``: of wall time.

    A resolver that hangs may take longer. Raises HttpFailed.
    """
    where = server_of(url)
    deadline = time.monotonic() + seconds
    try:
        with bounded_session() as session:
            response = session.request(
                method,
                url,
                headers={"User-Agent": _USER_AGENT, **(headers or {})},
                data=body,
                timeout=seconds,
                allow_redirects=False,
                stream=True,
            )
            with response:
                data = read_bounded(response, MAX_BYTES, deadline, where) if with_body else b""
                return Response(response.status_code, data, dict(response.headers))
    except (OSError, ValueError) as error:  # OSError: of requests; ValueError: of invalid addresses and headers
        raise HttpFailed(describe_failure(error, where)) from error


def read_bounded(response: Any, limit: int, deadline: float, where: str) -> bytes:
    """The body of a streamed response. ``deadline``: by the monotonic clock. Raises HttpFailed."""
    limit_rest(response.raw, max(deadline - time.monotonic(), 0.001))
    parts, size = [], 0
    for part in response.iter_content(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise HttpFailed(f"{where}: its response is longer than {limit} bytes")
    return b"".join(parts)


def server_of(url: str) -> str:
    """Scheme, name and port of a URL: its path may be a secret."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an invalid URL"
    return f"{parts.scheme}://{parts.hostname or ''}{port}"


def describe_failure(error: Exception, where: str) -> str:
    """Why a request to the server ``where`` has no answer."""
    found = from_exception(error, where)
    return f"{where}: {type(error).__name__}" if found.kind == OTHER else found.message
