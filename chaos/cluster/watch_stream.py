"""Watch stream: an open watch request, read in chunks."""

# ruff: noqa: PLC0415 - urllib3 is slow to import
from __future__ import annotations

import select
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

from chaos.cluster.consistent_read import MetadataApi
from chaos.cluster.errors import RESET, KubeUnreachable, from_exception
from chaos.cluster.pools import CHUNK_BYTES
from chaos.core.ports import KubeApi


class WatchStream:
    """An open watch: a context manager over raw chunks. Raises KubeUnreachable and, on entry, KubeRejected."""

    def __init__(self, connect: Callable[[], Any], where: str) -> None:
        self._connect = connect
        self._where = where
        self._response: Any = None
        self._aborted = threading.Event()
        self._input = select.poll()

    def __enter__(self) -> Iterator[bytes]:
        self._response = self._connect()
        sock = getattr(self._response.connection, "sock", None)
        if sock is not None:
            self._input.register(sock, select.POLLIN)
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
                self._response.shutdown()

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


class WatchApi(KubeApi, MetadataApi, Protocol):
    """The API as the observers use it: watches that can be aborted, consistent reads, and a health probe."""

    def stream(self, path: str, query: Mapping[str, str]) -> WatchStream: ...

    def probe(self, timeout: float) -> float | None:
        """The server's time in whole seconds, if it sends one.

        Raises KubeUnreachable or KubeRejected unless the server reports in ``timeout`` wall seconds that it is ready.
        """
