"""What real API servers, and what stands between them and their clients, do to clients: switches of the lab.

Streams:

=============== =====================================================================================================
``cut``         The connection of a watch is reset, in the middle of an event.
``torn``        The stream of a watch ends well for HTTP, but in the middle of an event.
``end``         A watch ends well before its time, as when an API server is restarted.
``end-at-once`` Every watch ends as soon as it began.
``endless``     timeoutSeconds is ignored: a watch never ends by itself.
``half-open``   A watch falls silent for ever and its connection stays open.
``split``       An event comes in several chunks, cut anywhere, also inside a character.
``gone``        The history is compacted before every second watch that goes on from a version: ERROR event 410.
``gone-http``   The same, and the 410 is the HTTP status, as aggregated API servers and proxies answer.
=============== =====================================================================================================

Objects in lists and watches (and alone):

================== ==================================================================================================
``line-breaks``    An annotation holds U+0085, U+2028 and U+2029, which JSON need not escape.
``null-lists``     Empty lists and maps are null, and images have ``names: null``, as Go writes nil slices.
``null-bookmarks`` Bookmarks are objects full of null.
``legacy-events``  Events as old recorders write them: ``eventTime: null`` and no reporting controller.
================== ==================================================================================================

What strikes streams strikes at random, once in some 30 events. Several at once are allowed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from chaos.lab.apiserver.http.watch_cache import WatchRepresentation
from chaos.lab.spec import ApiMisbehaviour

STREAM_FAULTS: frozenset[ApiMisbehaviour] = frozenset({"cut", "torn", "end", "half-open"})
_FAULT_RATE = 1 / 30  # faults per event of a watch
_LINE_BREAKS = "one\u0085two\u2028three\u2029four"
_NULL_BOOKMARK: dict[str, Any] = {
    "spec": {"containers": None, "template": {"spec": {"containers": None}}, "taints": None, "selector": None},
    "status": None,
    "involvedObject": {},
    "eventTime": None,
}
_NULL_METADATA = {"creationTimestamp": None, "labels": None, "annotations": None, "managedFields": None}


class FaultInjector:
    """``on`` may be changed while the lab runs. Its dice are its own: what clients see does not change the cluster."""

    def __init__(self, names: Iterable[ApiMisbehaviour] = (), seed: int = 1) -> None:
        self.enabled: set[ApiMisbehaviour] = set(names)
        self.rng = random.Random(seed)  # noqa: S311 - repeatable, not secret

    def should_compact(self) -> bool:
        """Asked before a watch goes on from a version: is the history lost now?"""
        return bool(self.enabled & {"gone", "gone-http"}) and self.rng.random() < 0.5

    def next_fault(self) -> str:
        """Asked once an event of a stream: which of STREAM_FAULTS strikes, "" for none."""
        chosen = sorted(self.enabled & STREAM_FAULTS)
        return self.rng.choice(chosen) if chosen and self.rng.random() < _FAULT_RATE else ""

    def split_chunks(self, line: bytes) -> list[bytes]:
        """The chunks in which an event is sent."""
        if "split" not in self.enabled:
            return [line]
        cuts = sorted({self.rng.randrange(1, len(line)) for _ in range(3)})
        return [line[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(line)], strict=True)]

    def corrupt_bookmark(self, obj: dict[str, Any]) -> dict[str, Any]:
        """A bookmark as it is served."""
        if "null-bookmarks" not in self.enabled or obj["kind"] == "Table":
            return obj
        return {**obj, **_NULL_BOOKMARK, "metadata": _NULL_METADATA | obj["metadata"]}

    def corrupt_body(self, body: Any) -> Any:
        """The body of an answer as it is served: objects and lists of objects are changed."""
        if not self.enabled or not isinstance(body, dict):
            return body
        if isinstance(body.get("items"), list):
            kind = str(body.get("kind", "")).removesuffix("List")
            return {**body, "items": [self.corrupt_object(item, kind) for item in body["items"]]}
        return self.corrupt_object(body, str(body.get("kind", "")))

    def corrupt_object(self, obj: dict[str, Any], kind: str) -> dict[str, Any]:
        """An object as it is served; what is none (Status, rows of a Table) is left alone."""
        if not self.enabled or "uid" not in (obj.get("metadata") or {}):
            return obj
        if kind == "Event" and "legacy-events" in self.enabled:
            obj = {**obj, "eventTime": None, "reportingComponent": "", "reportingInstance": ""}
        if "null-lists" in self.enabled:
            obj = _empty_to_null(obj)
            if kind == "Node":
                obj["status"] = {**obj.get("status", {}), "images": [{"names": None, "sizeBytes": 1}]}
        if "line-breaks" in self.enabled:
            metadata = obj["metadata"]
            annotations = (metadata.get("annotations") or {}) | {"example.com/note": _LINE_BREAKS}
            obj = {**obj, "metadata": {**metadata, "annotations": annotations}}
        return obj


@dataclass(frozen=True)
class CorruptedRepresentation:
    """A representation as the switches have it."""

    inner: WatchRepresentation
    fault_injector: FaultInjector

    def show(self, obj: dict[str, Any]) -> dict[str, Any]:
        shown = self.inner.show(obj)
        if "uid" not in obj["metadata"]:
            return self.fault_injector.corrupt_bookmark(shown)
        return self.fault_injector.corrupt_object(shown, str(shown["kind"]))


def _empty_to_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _empty_to_null(item) for key, item in value.items()} or None
    if isinstance(value, list):
        return [_empty_to_null(item) for item in value] or None
    return value
