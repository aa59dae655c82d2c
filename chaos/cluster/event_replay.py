"""Replays: every change of a collection since a resourceVersion, from a short watch that ends with a bookmark.

A consistent read has no trace of an object that came and went between two of them. A watch has: its bookmark states
that everything up to a resourceVersion was sent. kube-apiserver sends one 2 s before a watch times out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from chaos.cluster.watch_codec import DECODE_ERRORS, split_lines
from chaos.cluster.watch_stream import WatchStream
from chaos.core.recording import BOOKMARK, DELETED, ERROR

_TIMEOUT = "3"  # seconds: the bookmark comes after one


class StreamApi(Protocol):
    """What a replay needs of the API server."""

    def stream(self, path: str, query: Mapping[str, str]) -> WatchStream: ...


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Event(msgspec.Struct, gc=False):
    type: str
    object: _Object


@dataclass(frozen=True, slots=True)
class EventReplay:
    """All changes up to the resourceVersion ``version``: the last version of each object by uid, None if deleted."""

    version: str
    objects: Mapping[str, str | None]


_decode = msgspec.json.Decoder(_Event).decode


def replay_events(
    api: StreamApi, path: str, version: str, on_open: Callable[[WatchStream], None] = lambda _: None
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
                event = _decode(line)
            except DECODE_ERRORS:
                return None
            metadata = event.object.metadata
            if event.type == BOOKMARK:
                return EventReplay(metadata.resource_version, objects)
            if event.type == ERROR:
                return None
            objects[metadata.uid] = None if event.type == DELETED else metadata.resource_version
    return None
