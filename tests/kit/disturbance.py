"""Plans of disturbance: by how much each watch event is late, and which come twice. Up to the seed, in cluster time.

Per object the order is kept, as in every API server; everything else is up to the seed.
"""

from __future__ import annotations

import math
import random
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

MAX_DELAY = 60.0
_TWICE = 0.1  # of the events
Delay = Callable[[str, float], float]  # of an event about an object, that happens at a time
_Line = tuple[str, bytes]  # of a watch of a path


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
class DisturbancePlan:
    """What a seed does to each resource. Thread-safe."""

    now: Callable[[], float]
    seed: int

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)  # noqa: S311 - repeatable
        self._delays: dict[str, Delay] = {}
        self._planned: dict[_Line, tuple[float, float]] = {}  # when it happened, and when it is due
        self._delivered: dict[_Line, float] = {}
        self._last_due: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def schedule(self, path: str, line: bytes) -> list[float]:
        """When a line is delivered, perhaps twice. One that is sent again is due as before."""
        now = self.now()
        event = msgspec.json.decode(line)
        metadata = event["object"].get("metadata", {})
        key = path, f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        with self._lock:
            if event["type"] in ("BOOKMARK", "ERROR"):  # it is not ahead of the events before it
                return [max([now, *(due for (its, _), due in self._last_due.items() if its == path)])]
            if (path, line) not in self._planned:
                delay = self._delays.setdefault(path, delays(self._chance))
                due = max(now + delay(key[1], now), self._last_due.get(key, 0.0))
                self._planned[path, line], self._last_due[key] = (now, due), due
            _, due = self._planned[path, line]
            again = [due + self._chance.uniform(0.0, 10.0)] if self._chance.random() < _TWICE else []
            return [due, *again]

    def note_delivery(self, path: str, line: bytes, t: float) -> None:
        """A line was delivered."""
        with self._lock:
            self._delivered.setdefault((path, line), t)

    def latest(self, happened_by: float) -> float:
        """When the last of what happened by then was first delivered; infinite if some never was."""
        times = (
            self._delivered.get(line, math.inf)
            for line, (happened, _) in self._planned.items()
            if happened <= happened_by
        )
        return max(times, default=0.0)
