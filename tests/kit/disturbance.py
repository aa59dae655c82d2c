"""Disturbed runs: by how much each watch event is late, and what a run has shown beside an undisturbed one."""

from __future__ import annotations

import math
import random
import resource
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from chaos.core.result import RunResult
from chaos.core.verdict import Status, Verdict

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


# An expression over several lists needs to know which of their versions were there at one time: late versions do
# not show it.
_LISTS = "all objects of the lists in the expression"
NAMES = ("graceful-poweroff", "cordon", "no-execute-tolerated-for-a-time", "drain-blocked", "power-cut", "lease-stops")
LATE, STARVED = KINDS = ("late", "starved")
Statuses = Mapping[str, Status]  # of the expectations, by name


@dataclass
class Row:
    """One run. ``statuses`` and those of the run that is ``undisturbed``, by the expectation's name.

    ``refused``: why it ended before the fault, which late watches may cause and a slow server must not. ``because``:
    of each verdict that differs, by name. ``reversed``: those of them that contradict the undisturbed run.
    ``unexcused``: late watches did not make these inconclusive, as all that happened by the deadline was delivered by
    then. ``cpu``, ``wall``: seconds, the lab's included.
    """

    kind: str
    seed: int
    experiment: str
    statuses: dict[str, str] = field(default_factory=dict)
    undisturbed: dict[str, str] = field(default_factory=dict)
    because: dict[str, str] = field(default_factory=dict)
    reversed: list[str] = field(default_factory=list)
    unexcused: list[str] = field(default_factory=list)
    refused: str = ""
    cpu: float = 0.0
    wall: float = 0.0

    @property
    def wrong(self) -> list[str]:
        return [*self.reversed, *self.unexcused]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measured(
    kind: str, seed: int, expected: Statuses, run: Callable[[], tuple[RunResult, DisturbancePlan | None]]
) -> Row:
    """The row of a run of the experiment of this seed. ``expected``: the statuses of the undisturbed one."""
    row = Row(kind, seed, name_of(seed))
    row.undisturbed = {name: str(status) for name, status in expected.items()}
    begin = _seconds()
    result, plan = run()
    row.cpu, row.wall = (round(now - then, 1) for now, then in zip(_seconds(), begin, strict=True))
    if result.status is Status.INCONCLUSIVE and all(step.begin is None for step in result.steps):
        row.refused = result.headline
        if plan and plan.latest(plan.now()) <= plan.now():
            row.unexcused.append(result.headline)
        return row
    for verdict in verdicts(result):
        _compare(row, verdict, expected[verdict.name])
        if verdict.status is Status.INCONCLUSIVE and plan and _LISTS not in verdict.because:
            moment = _decided_at(verdict, result)
            if plan.latest(moment) <= moment:
                row.unexcused.append(verdict.name)
    return row


def _decided_at(verdict: Verdict, result: RunResult) -> float:
    """When all that the verdict depends on has to be known. An ``order`` is as open as what it orders."""
    if "the steady state did not hold" in verdict.because:
        return min(step.begin for step in result.steps if step.begin is not None)
    open_deadlines = (other.deadline for other in verdicts(result) if other.status is Status.INCONCLUSIVE)
    return verdict.deadline or min(filter(None, open_deadlines), default=math.inf)


def name_of(seed: int) -> str:
    """The experiment of a seed."""
    return NAMES[seed % len(NAMES)]


def statuses(result: RunResult) -> Statuses:
    return {verdict.name: verdict.status for verdict in verdicts(result)}


def _compare(row: Row, verdict: Verdict, expected: Status) -> None:
    row.statuses[verdict.name] = str(verdict.status)
    if verdict.status is not expected:
        row.because[verdict.name] = verdict.because
        if verdict.status is not Status.INCONCLUSIVE:
            row.reversed.append(verdict.name)


def verdicts(result: RunResult) -> tuple[Verdict, ...]:
    return (*result.hypothesis, *result.recovery)


def _seconds() -> tuple[float, float]:
    """CPU of this process and its children that have ended, and wall."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used), time.monotonic()
