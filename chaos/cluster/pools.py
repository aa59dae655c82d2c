"""HTTP connection pools: one request and its whole response, within bounds of time and size."""

# ruff: noqa: PLC0415 - urllib3 is slow to import
from __future__ import annotations

import logging
import time
from typing import Any
from urllib.parse import urlsplit

from chaos.cluster.errors import KubeRejected, from_exception
from chaos.core.errors import NodefallError
from chaos.core.ports import Response

CHUNK_BYTES = 65536
Timeouts = tuple[float, float]  # wall seconds: to connect, to respond
_MAX_BODY_BYTES = 512 << 20  # lists come in pages
_log = logging.getLogger(__name__)


def make_pool(configuration: Any, **trust: Any) -> Any:
    """A pool with the client certificate of ``configuration``; ``trust``: urllib3's options for the server's."""
    from urllib3 import PoolManager

    return PoolManager(
        num_pools=256,
        maxsize=2,
        cert_reqs="CERT_REQUIRED",
        cert_file=configuration.cert_file,
        key_file=configuration.key_file,
        **trust,
    )


def exchange(
    pool: Any, method: str, url: str, data: bytes | None, headers: dict[str, str], timeouts: Timeouts
) -> Response:
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


def send(pool: Any, method: str, url: str, data: bytes | None, headers: dict[str, str], timeouts: Timeouts) -> Any:
    """Send a request; the response with its body still to be read. Raises KubeUnreachable."""
    from urllib3 import Timeout
    from urllib3.exceptions import HTTPError

    try:
        return pool.request(
            method,
            url,
            body=data,
            headers=headers,
            timeout=Timeout(connect=timeouts[0], read=timeouts[1]),
            retries=False,
            redirect=False,
            preload_content=False,
        )
    except (HTTPError, OSError) as error:
        raise from_exception(error, _origin(url)) from error


def read_body(response: Any, url: str, timeout: float) -> bytes:
    """The whole body, in ``timeout`` wall seconds for all of it. Raises KubeUnreachable, KubeRejected."""
    from urllib3.exceptions import HTTPError

    deadline = time.monotonic() + timeout
    body = bytearray()
    try:
        for chunk in response.stream(CHUNK_BYTES):
            body += chunk
            if time.monotonic() > deadline:
                raise TimeoutError
            if len(body) > _MAX_BODY_BYTES:
                response.close()
                message = f"{_origin(url)}: the response is longer than {_MAX_BODY_BYTES >> 20} MiB"
                raise KubeRejected(response.status, message)
    except (HTTPError, OSError) as error:
        response.close()
        raise from_exception(error, _origin(url)) from error
    response.release_conn()
    return bytes(body)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
