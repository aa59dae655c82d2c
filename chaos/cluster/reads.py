"""Reads of a collection: in pages; its versions by a consistent read; all changes since a version by a replay.

A consistent read says which version of each object the API server knows now, without the objects themselves. A list
without a resourceVersion is as new as the store itself at its start, so what a watch has not delivered of it is lag.
Only metadata is asked for: a tenth of the bytes, and no secrets.

A consistent read has no trace of an object that came and went between two of them. A watch has: its bookmark states
that everything up to a resourceVersion was sent. kube-apiserver sends one 2 s before a watch times out, so that a short
watch is a replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from chaos.cluster.api import WatchApi, WatchStream
from chaos.cluster.errors import KubeRejected, from_response
from chaos.cluster.watch_codec import DECODE_ERRORS, ListPage, WatchCodec, split_lines
from chaos.core.ports import KubeApi
from chaos.core.recording import BOOKMARK, DELETED, ERROR

LIST_PAGE_SIZE = 500
_GONE = 410
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"  # the Accept header
PAGE_SIZE = 5000  # objects of a page: about 5 MB
_TIMEOUT = "3"  # seconds: the bookmark comes after one


def iter_pages(api: KubeApi, path: str, codec: WatchCodec) -> Iterator[tuple[ListPage, bool]]:
    """Pages of a consistent list, each with whether the list restarts with it: then discard the pages before.

    A list restarts when its continue token has expired (410): the rest is read in one piece.
    Raises KubeUnreachable, KubeRejected.
    """
    query = {"limit": str(LIST_PAGE_SIZE)}
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
        query = {"limit": str(LIST_PAGE_SIZE), "continue": page.metadata.continue_}


class _Item(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Item


class _Head(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _Head = msgspec.field(default_factory=_Head)
    items: list[_Object] | None = None


@dataclass(frozen=True, slots=True)
class ConsistentRead:
    """The state of a collection at some moment from ``begin`` (cluster time) on.

    ``version``: the list's resourceVersion; ``objects``: resourceVersions by uid.
    """

    begin: float
    version: str
    objects: Mapping[str, str]


_decode_page = msgspec.json.Decoder(_Page).decode


def read_version(api: WatchApi, path: str) -> str:
    """The resourceVersion of the collection now, as cheap as can be. Raises KubeUnreachable, KubeRejected."""
    return _read_page(api, path, {"limit": "1"}).metadata.resource_version


def _read_page(api: WatchApi, path: str, query: Mapping[str, str]) -> _Page:
    response = api.metadata(path, query)
    if response.status != 200:
        raise from_response(response, f"metadata of {path}")
    try:
        return _decode_page(response.body)
    except DECODE_ERRORS as error:
        raise KubeRejected(200, f"metadata of {path} cannot be decoded: {error}") from error


def read_versions(api: WatchApi, path: str, begin: float) -> ConsistentRead:
    """Read the versions of all objects at ``path``. Raises KubeUnreachable, KubeRejected."""
    objects: dict[str, str] = {}
    query = {"limit": str(PAGE_SIZE)}
    while True:
        try:
            page = _read_page(api, path, query)
        except KubeRejected as error:
            if error.status != _GONE or "continue" not in query:
                raise
            objects, query = {}, {}  # everything is read in one piece
            continue
        objects.update((item.metadata.uid, item.metadata.resource_version) for item in page.items or ())
        if not page.metadata.continue_:
            return ConsistentRead(begin, page.metadata.resource_version, objects)
        query = {"limit": str(PAGE_SIZE), "continue": page.metadata.continue_}


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    resource_version: str = ""


class _EventObject(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Event(msgspec.Struct, gc=False):
    type: str
    object: _EventObject


@dataclass(frozen=True, slots=True)
class EventReplay:
    """All changes up to the resourceVersion ``version``: the last version of each object by uid, None if deleted."""

    version: str
    objects: Mapping[str, str | None]


_decode_event = msgspec.json.Decoder(_Event).decode


def replay_events(
    api: WatchApi, path: str, version: str, on_open: Callable[[WatchStream], None] = lambda _: None
) -> EventReplay | None:
    """Watch ``path`` from ``version`` until a bookmark comes; None if the watch ends without one.

    ``on_open`` is called with the watch, which another thread may abort. Raises KubeUnreachable, KubeRejected,
    TruncatedLineError.
    """
    objects: dict[str, str | None] = {}
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": _TIMEOUT,
        "resourceVersion": version,
    }
    stream = api.stream(path, query)
    with stream as chunks:
        on_open(stream)
        for line in split_lines(chunks):
            try:
                event = _decode_event(line)
            except DECODE_ERRORS:
                return None
            metadata = event.object.metadata
            if event.type == BOOKMARK:
                return EventReplay(metadata.resource_version, objects)
            if event.type == ERROR:
                return None
            objects[metadata.uid] = None if event.type == DELETED else metadata.resource_version
    return None
