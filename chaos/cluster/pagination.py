"""Paged lists."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.cluster.errors import KubeRejected, from_response
from chaos.cluster.watch_codec import DECODE_ERRORS, ListPage, WatchCodec
from chaos.core.ports import KubeApi

PAGE_SIZE = 500
_GONE = 410


def iter_pages(api: KubeApi, path: str, codec: WatchCodec) -> Iterator[tuple[ListPage, bool]]:
    """Pages of a consistent list, each with whether the list restarts with it: then discard the pages before.

    A list restarts when its continue token has expired (410): the rest is read in one piece.
    Raises KubeUnreachable, KubeRejected.
    """
    query = {"limit": str(PAGE_SIZE)}
    restarts = False
    while True:
        response = api.request("GET", path, query)
        if response.status == _GONE and "continue" in query:
            query, restarts = {}, True
            continue
        if response.status != 200:
            raise from_response(response, f"list of {path}")
        try:
            page = codec.decode_page(response.body)
        except DECODE_ERRORS as error:
            raise KubeRejected(200, f"list of {path} cannot be decoded: {error}") from error
        yield page, restarts
        restarts = False
        if not page.metadata.continue_:
            return
        query = {"limit": str(PAGE_SIZE), "continue": page.metadata.continue_}
