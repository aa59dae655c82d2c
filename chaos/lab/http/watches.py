"""Watches: a cache of changes per resource; each event is encoded once and written to all interested watchers.

Source of the behaviour: k8s.io/apiserver/pkg/storage/cacher (cacher.go, cache_watcher.go).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from chaos.lab.apiserver.index import Key
from chaos.lab.apiserver.store import Change, Store
from chaos.lab.http.errors import ApiError
from chaos.lab.http.fault_injection import (
    CorruptedRepresentation,
    FaultInjector,
    WatchCache,
    WatchRepresentation,
    change_frame,
    event_frame,
)
from chaos.lab.http.messages import Predicate, Request
from chaos.lab.http.options import WatchOptions
from chaos.lab.http.watch_stream import EventStream, open_stream
from chaos.lab.objects import Object, name_of, namespace_of
from chaos.lab.sim.lockstep import Waits

BOOKMARK_PERIOD = 60.0  # simulated seconds; defaultBookmarkFrequency
_PROGRESS_INTERVAL = 600.0  # simulated seconds; etcd's default (server/embed, WatchProgressNotifyInterval)
FINAL_BOOKMARK_LEAD = 2.0  # simulated seconds from the last bookmark to the end of the watch (nextBookmarkTime)
_UNCACHED = frozenset({"events"})  # without a watch cache, so without bookmarks (pkg/registry/core/event/storage)
_BLOCK_TIMEOUT = 3.0  # simulated seconds to wait for a future version (blockTimeout)
_MIN_REQUEST_TIMEOUT = 1800  # simulated seconds; --min-request-timeout
_MAX_QUEUE = 10_000  # changes queued for a watcher while it receives initial events
_INITIAL_EVENTS_END = {"annotations": {"k8s.io/initial-events-end": "true"}}
_Frames = dict[tuple[str, WatchRepresentation], bytes]


@dataclass(frozen=True, slots=True)
class Selection:
    """Objects of a watch, and their representation."""

    plural: str
    representation: WatchRepresentation
    namespace: str = ""
    predicates: Sequence[Predicate] = ()

    def selects(self, obj: Object) -> bool:
        if self.namespace and obj["metadata"].get("namespace") != self.namespace:
            return False
        return all(predicate(obj) for predicate in self.predicates)

    def event_type(self, change: Change) -> str:
        """Event type as of the watch cache: DELETED for an object that leaves the selection, ADDED for one that enters.

        "" for an object that is not selected.
        """
        if not self.namespace and not self.predicates:
            return change.type
        before = change.before is not None and self.selects(change.before)
        after = change.type != "DELETED" and self.selects(change.object)
        if before and after:
            return "MODIFIED"
        return "ADDED" if after else "DELETED" if before else ""


@dataclass(eq=False, slots=True)
class Watcher:
    """One watch. ``queue`` holds changes until the initial events are written."""

    selection: Selection
    options: WatchOptions
    stream: EventStream
    end_time: float  # simulated time
    queue: list[Change] | None = field(default_factory=list)

    def offer(self, change: Change, frames: _Frames) -> bool:
        """Write the change if it is selected, and return whether it was. ``frames`` caches the frames of the change."""
        if self.queue is not None:
            self.queue.append(change)
            if len(self.queue) > _MAX_QUEUE:
                self.stream.done.set()
            return False
        type_ = self.selection.event_type(change)
        if not type_ or change.version <= self.options.resource_version:  # a watch may start at a future version
            return False
        key = (type_, self.selection.representation)
        if key not in frames:
            frames[key] = change_frame(change, *key)
        self.stream.write(frames[key])
        return True

    def bookmark(self, obj: dict[str, Any]) -> None:
        if self.options.allow_bookmarks and self.queue is None:
            self.stream.write(event_frame("BOOKMARK", self.selection.representation.show(obj)))


class WatchServer:
    """All watches of a store. ``watch_cache_size``: maximum number of stored changes per resource."""

    def __init__(self, store: Store, lockstep: Waits, faults: FaultInjector, watch_cache_size: int) -> None:
        self._store, self._lockstep, self._fault_injector = store, lockstep, faults
        self._caches: dict[str, WatchCache] = defaultdict(lambda: WatchCache(watch_cache_size))
        self._watchers: dict[str, dict[Watcher, None]] = defaultdict(dict)  # in the order of their start
        self._progress = store.sim.now, store.version  # etcd's last report, and when
        store.subscribe(self._on_change)

    def __len__(self) -> int:
        return sum(1 for _ in self._all_watchers())

    async def serve(self, request: Request, selection: Selection, options: WatchOptions) -> web.StreamResponse:
        """Serve a watch until it ends. Errors, such as a version that is too old, are sent as ERROR events.

        "Once we have passed authn/authz/admission, and successfully parsed a resource version, other errors must fail
        with a watch event of type ERROR" (cacher.go).
        """
        if options.resource_version and not options.send_initial_events and self._fault_injector.should_compact():
            for cache in self._caches.values():
                cache.compact(self._store.version)
        if "gone-http" in self._fault_injector.enabled:
            self._backlog(selection, options)
        stream = await open_stream(request, self._fault_injector)
        selection = replace(
            selection, representation=CorruptedRepresentation(selection.representation, self._fault_injector)
        )
        seconds = options.timeout_seconds or _MIN_REQUEST_TIMEOUT * (1 + self._fault_injector.rng.random())
        try:
            if options.send_initial_events:
                await self.wait_until_fresh(options.resource_version)
            backlog = self._backlog(selection, options)
            with self._lockstep.suspend_request():
                await self._follow(Watcher(selection, options, stream, self._store.sim.now + seconds), backlog)
        except ApiError as error:
            stream.write(event_frame("ERROR", error.status()))
        with self._lockstep.suspend_request():
            await stream.finish()
        return stream.response

    def end_all(self) -> None:
        for watcher in list(self._all_watchers()):
            watcher.stream.done.set()

    def keep_alive(self) -> None:
        """Send a bookmark to all watchers, so that clients see a live connection while simulated time stands still."""
        for watcher in list(self._all_watchers()):
            self._send_bookmark(watcher)

    def _all_watchers(self) -> Iterator[Watcher]:
        return (watcher for watchers in self._watchers.values() for watcher in watchers)

    def _backlog(self, selection: Selection, options: WatchOptions) -> list[Change]:
        """Changes since the requested version. Raises ApiError 410."""
        return (
            []
            if options.send_initial_events or not options.resource_version
            else self._caches[selection.plural].changes_since(options.resource_version)
        )

    async def _follow(self, watcher: Watcher, backlog: list[Change]) -> None:
        if "end-at-once" in self._fault_injector.enabled:
            return
        others, sim = self._watchers[watcher.selection.plural], self._store.sim
        timer = sim.at(watcher.end_time, watcher.stream.expire)
        others[watcher] = None
        if watcher.options.allow_bookmarks and watcher.selection.plural not in _UNCACHED:
            self._schedule_bookmark(watcher)
        try:
            await self._catch_up(watcher, backlog)
            await watcher.stream.done.wait()
        finally:
            del others[watcher]
            timer.cancel()

    def list_at(self, plural: str, namespace: str, version: int) -> list[Object]:
        """Objects at a version. Raises ApiError 410 if the cache no longer has it."""
        result = {_key(obj): obj for obj in self._store.list(plural, namespace)}
        for change in reversed(self._caches[plural].changes_since(version)):
            if change.before is None:
                result.pop(_key(change.object), None)
            elif not namespace or namespace_of(change.before) == namespace:
                result[_key(change.before)] = change.before
        return [result[key] for key in sorted(result)]

    async def wait_until_fresh(self, version: int) -> None:
        """Wait until the store has reached ``version``. Raises ApiError 504."""
        deadline = self._store.sim.now + _BLOCK_TIMEOUT
        while self._store.version < version and self._store.sim.now < deadline:
            await self._lockstep.wait_until(min(deadline, self._store.sim.now + 0.1))
        if self._store.version < version:
            causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
            message = f"Timeout: Too large resource version: {version}, current: {self._store.version}"
            raise ApiError(504, message, details={"causes": causes, "retryAfterSeconds": 1})

    async def _catch_up(self, watcher: Watcher, backlog: list[Change]) -> None:
        """Write initial events or the backlog, then the changes queued meanwhile."""
        selection, version = watcher.selection, self._store.version
        if watcher.options.send_initial_events:
            stored = [obj for obj in self._store.list(selection.plural, selection.namespace) if selection.selects(obj)]
            await watcher.stream.write_all(event_frame("ADDED", selection.representation.show(obj)) for obj in stored)
            end = self._bookmark(version, _INITIAL_EVENTS_END)
        else:
            events = ((selection.event_type(change), change) for change in backlog)
            await watcher.stream.write_all(
                change_frame(change, type_, selection.representation) for type_, change in events if type_
            )
            end = {}
        queue, watcher.queue = watcher.queue or [], None
        if end:
            watcher.bookmark(end)
        for change in queue:
            watcher.offer(change, {})
        self._lockstep.on_sent()

    def _bookmark(self, version: int = 0, extra: dict[str, Any] | None = None) -> dict[str, Any]:
        metadata = {"resourceVersion": str(version or self._store.version), **(extra or {})}
        return {"metadata": metadata}

    def _send_bookmark(self, watcher: Watcher) -> None:
        version = self._store.version
        if "idle-bookmarks" in self._fault_injector.enabled:
            if self._store.sim.now >= self._progress[0] + _PROGRESS_INTERVAL:
                self._progress = self._store.sim.now, version
            version = max(self._progress[1], self._caches[watcher.selection.plural].last_version)
        watcher.bookmark(self._bookmark(version))

    def _schedule_bookmark(self, watcher: Watcher) -> None:
        """Schedule a bookmark: about once a minute, and shortly before the end (nextBookmarkTime)."""
        now = self._store.sim.now
        due = min(now + BOOKMARK_PERIOD, watcher.end_time - FINAL_BOOKMARK_LEAD)
        if due > now:
            self._store.sim.at(due, self._send_periodic_bookmark, watcher)

    def _send_periodic_bookmark(self, watcher: Watcher) -> None:
        if watcher in self._watchers[watcher.selection.plural]:
            self._send_bookmark(watcher)
            self._lockstep.on_sent()
            self._schedule_bookmark(watcher)

    def _on_change(self, change: Change) -> None:
        self._caches[change.plural].add(change)
        if watchers := self._watchers[change.plural]:
            frames = _Frames()
            written = [watcher.offer(change, frames) for watcher in list(watchers)]  # one may end with its frame
            if any(written):
                self._lockstep.on_sent()


def _key(obj: Object) -> Key:
    return namespace_of(obj), name_of(obj)
