"""A proxy between a run and its lab: it delivers watch events late, twice and in another order.

Per object the order is kept, as in every API server; everything else is up to the seed. Times are the lab's.
"""

from __future__ import annotations

import heapq
import math
import random
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from chaos.kube.errors import RESET, KubeUnreachable
from chaos.kube.watch_codec import split_lines
from chaos.kube.watch_stream import WatchStream
from chaos.model.errors import NodefallError
from chaos.model.ports import Clock

MAX_DELAY = 60.0
_POLL = 0.003  # wall seconds
_PACE = 20.0  # seconds of the lab's time a wall second, at most
_TWICE = 0.1  # of the events
Delay = Callable[[str, float], float]  # of an event about an object, that happens at a time


def delays(chance: random.Random) -> Delay:
    """How one resource is delayed."""
    most = chance.uniform(0.0, MAX_DELAY)
    own: dict[str, float] = defaultdict(lambda: chance.uniform(0.0, most) if chance.random() < 0.3 else 0.0)
    held_from, held_for = chance.uniform(0.0, 60.0), most
    begin: list[float] = []

    def held(_: str, t: float) -> float:
        begin.append(t)
        since = t - begin[0] - held_from
        return max(0.0, held_for - since) if since > 0 else 0.0

    modes: list[Delay] = [
        lambda _, __: 0.0,
        lambda _, __: most,
        lambda key, _: own[key],
        lambda _, __: chance.uniform(0.0, most) if chance.random() < 0.2 else 0.0,
        held,
    ]
    return chance.choice(modes)


@dataclass
class Disturbance:
    """What a seed does to each resource. ``delivered``: (path, when it happened, when it was delivered)."""

    clock: Clock
    seed: int
    delivered: list[tuple[str, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)  # noqa: S311 - repeatable
        self._delays: dict[str, Delay] = {}
        self._due: dict[tuple[str, bytes], float] = {}
        self._last_due: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()
        self._streams: list[_LateStream] = []
        self._stopped, self._scheduled = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    @contextmanager
    def active(self) -> Iterator[Disturbance]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stopped.set()
            self._scheduled.set()
            self._thread.join(10)

    def open(self, path: str, upstream: WatchStream) -> _LateStream:
        stream = _LateStream(self, path, upstream)
        with self._lock:
            self._streams.append(stream)
        return stream

    def schedule(self, path: str, line: bytes) -> tuple[list[float], float]:
        """When a line is delivered, perhaps twice, and when it happened. One that is sent again is due as before."""
        now = self.clock.now()
        event = msgspec.json.decode(line)
        metadata = event["object"].get("metadata", {})
        key = path, f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        with self._lock:
            if event["type"] in ("BOOKMARK", "ERROR"):  # it is not ahead of the events before it
                due = max([now, *(due for (its, _), due in self._last_due.items() if its == path)])
                return [due], now
            if (path, line) not in self._due:
                delay = self._delays.setdefault(path, delays(self._chance))
                due = max(now + delay(key[1], now), self._last_due.get(key, 0.0))
                self._due[path, line] = self._last_due[key] = due
            due = self._due[path, line]
            again = [due + self._chance.uniform(0.0, 10.0)] if self._chance.random() < _TWICE else []
            return [due, *again], now

    def latest(self, happened_by: float) -> float:
        """When the last of what happened by then was delivered."""
        return max((due for _, happened, due in self.delivered if happened <= happened_by), default=0.0)

    def wake(self) -> None:
        """Look at the clock: something was scheduled."""
        self._scheduled.set()

    def _poll(self) -> None:
        """Deliver what is due. Each look at the clock costs the lab as much as a request."""
        pause: float | None = None  # wall seconds; the lab's time may stand still meanwhile
        while True:
            self._scheduled.wait(pause)
            self._scheduled.clear()
            if self._stopped.is_set():
                return
            try:
                now = self.clock.now()
            except NodefallError:  # the lab has ended
                return
            with self._lock:
                streams = list(self._streams)
            following = min((stream.release(now) for stream in streams), default=math.inf)
            pause = None if math.isinf(following) else max(_POLL, (following - now) / _PACE)


class _LateStream:
    """A watch whose lines are delivered when they are due."""

    def __init__(self, disturbance: Disturbance, path: str, upstream: WatchStream) -> None:
        self._disturbance, self._path, self._upstream = disturbance, path, upstream
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, float, bytes]] = []
        self._ready: deque[bytes] = deque()
        self._count = 0
        self._end: Exception | None = None
        self._has_ended = self._aborted = False

    def __enter__(self) -> Iterator[bytes]:
        chunks = self._upstream.__enter__()
        threading.Thread(target=self._read, args=(chunks,), daemon=True).start()
        return self._chunks()

    def __exit__(self, *_: object) -> None:
        self.abort()

    def has_input(self) -> bool:
        return bool(self._ready)

    def abort(self) -> None:
        self._upstream.abort()
        with self._changed:
            self._aborted = True
            self._changed.notify_all()

    def release(self, now: float) -> float:
        """Deliver what is due by ``now``. When the next is due."""
        with self._changed:
            while self._waiting and self._waiting[0][0] <= now:
                _, _, happened, line = heapq.heappop(self._waiting)
                self._disturbance.delivered.append((self._path, happened, now))
                self._ready.append(line)
            self._changed.notify_all()
            return self._waiting[0][0] if self._waiting else math.inf

    def _read(self, chunks: Iterator[bytes]) -> None:
        end: Exception | None = None
        try:
            for line in split_lines(chunks):
                dues, happened = self._disturbance.schedule(self._path, line)
                with self._changed:
                    for due in dues:
                        self._count += 1
                        heapq.heappush(self._waiting, (due, self._count, happened, line))
                self._disturbance.wake()
        except Exception as error:  # noqa: BLE001 - raised again where the lines are read
            end = error
        with self._changed:
            self._end, self._has_ended = end, True
            self._changed.notify_all()

    def _chunks(self) -> Iterator[bytes]:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._ready or self._aborted or (self._has_ended and not self._waiting), timeout=60
                )
                if self._aborted:
                    raise KubeUnreachable(RESET, f"watch of {self._path}: the watch was aborted")
                if not self._ready and self._has_ended and not self._waiting:
                    if self._end:
                        raise self._end
                    return
                lines, self._ready = list(self._ready), deque()
            for line in lines:
                yield line + b"\n"


class DisturbedApi:
    """An API client whose watches are late."""

    def __init__(self, api: Any, disturbance: Disturbance) -> None:
        self._api, self._disturbance = api, disturbance

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def stream(self, path: str, query: Mapping[str, str]) -> _LateStream:
        return self._disturbance.open(path, self._api.stream(path, query))
