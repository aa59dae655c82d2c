"""Paged lists."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.kube.errors import KubeRejected, from_response
from chaos.kube.watch_codec import DECODE_ERRORS, ListPage, WatchCodec
from chaos.model.ports import KubeApi

PAGE_SIZE = 500
_GONE = 410


def iter_pages(api: KubeApi, path: str, wire: WatchCodec) -> Iterator[tuple[ListPage, bool]]:
    """Pages of a consistent list; True: forget the pages before, the list begins anew.

    That happens when the server no longer knows the list's continue token (410): the rest is read in one piece.
    Raises KubeUnreachable, KubeRejected.
    """
    query = {"limit": str(PAGE_SIZE)}
    anew = False
    while True:
        response = api.request("GET", path, query)
        if response.status == _GONE and "continue" in query:
            query, anew = {}, True
            continue
        if response.status != 200:
            raise from_response(response, f"list of {path}")
        try:
            page = wire.decode_page(response.body)
        except DECODE_ERRORS as error:
            raise KubeRejected(200, f"list of {path} is not understood: {error}") from error
        yield page, anew
        anew = False
        if not page.metadata.continue_:
            return
        query = {"limit": str(PAGE_SIZE), "continue": page.metadata.continue_}
