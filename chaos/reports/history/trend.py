"""Measured durations of each expectation of an experiment over its runs. Runs that are not comparable are not mixed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from chaos.core.result import SHORT_UID, RunResult, StoredRun
from chaos.core.verdict import Status, Verdict
from chaos.reports.history.statistics import ChangePoint, Spread, change_points, spread
from chaos.reports.run.outline import Duration, measured_duration, operator_of

_SECTIONS = ("hypothesis", "recovery", "abort")  # attributes of a result; a steady state is of one moment
CLUSTER, EXPERIMENT = "clusters", "experiments"  # what may be mixed on request; never simulated with real runs


@dataclass(frozen=True, slots=True)
class Group:
    """Comparable runs: "" for what is unknown, or was mixed on request.

    ``cluster``: as :attr:`StoredRun.cluster_key`. ``experiment_hash``: SHA-256 of the experiment's file.
    """

    simulated: bool
    cluster: str
    experiment_hash: str

    def __str__(self) -> str:
        name = self.cluster if self.simulated else self.cluster[:SHORT_UID]
        file = self.experiment_hash[:SHORT_UID]
        kind = "simulated cluster" if self.simulated else "cluster"
        return f"{kind} {name or 'any or unknown'}, experiment {file or 'any or unknown'}"


@dataclass(frozen=True, slots=True)
class Point:
    """The verdict of one run. ``run``: its position among the runs of the trend; ``duration`` None: not measured."""

    run: int
    status: Status
    duration: Duration | None

    @property
    def seconds(self) -> float | None:
        """The duration, infinite if it exceeded its bound; None if none was measured."""
        if self.duration is None:
            return None
        return math.inf if self.duration.is_exceeded else self.duration.seconds


@dataclass(frozen=True, slots=True)
class ExpectationTrend:
    """One expectation over the runs that have it, the oldest first. ``bound``: seconds, of the newest measured one.

    ``spread`` is that of the durations; with ``within``, those that exceeded their bound count as infinite. The index
    of a change is the position of a point.
    """

    section: str
    name: str
    operator: str
    points: tuple[Point, ...]
    spread: Spread | None
    bound: float | None
    changes: tuple[ChangePoint, ...]

    @property
    def counts(self) -> Mapping[Status, int]:
        """Number of verdicts by status."""
        return Counter(point.status for point in self.points)


@dataclass(frozen=True, slots=True)
class Trend:
    """The comparable runs with the newest one, the oldest first; ``others``: numbers of runs that were left out."""

    experiment: str
    group: Group
    runs: tuple[StoredRun, ...]
    expectations: tuple[ExpectationTrend, ...]
    others: Mapping[Group, int]
    unfinished: int


def trend(experiment: str, runs: Iterable[StoredRun], mix: Collection[str] = ()) -> Trend | None:
    """The trend of the runs, which are the newest first; None if none of them has a result.

    ``mix``: :data:`CLUSTER` or :data:`EXPERIMENT`, which then need not be the same.
    """
    groups: dict[Group, list[StoredRun]] = {}
    unfinished = 0
    for run in runs:
        if run.result is None:
            unfinished += 1
        else:
            groups.setdefault(_group_of(run, mix), []).append(run)
    if not groups:
        return None
    (group, members), *others = groups.items()
    members.reverse()
    expectations = expectation_trends([run.result for run in members])
    left_out = {other: len(found) for other, found in others}
    return Trend(experiment, group, tuple(members), expectations, left_out, unfinished)


def _group_of(run: StoredRun, mix: Collection[str]) -> Group:
    cluster = "" if CLUSTER in mix else run.cluster_key
    return Group(run.simulated, cluster, "" if EXPERIMENT in mix else run.experiment_hash)


def expectation_trends(results: Sequence[RunResult | None]) -> tuple[ExpectationTrend, ...]:
    """Those of the results of runs, the oldest first.

    In the order of the newest run, then those that it no longer has.
    """
    found: dict[tuple[str, str, int], list[Point]] = {}
    operators: dict[tuple[str, str, int], str] = {}
    for position in range(len(results) - 1, -1, -1):  # from the newest, whose order counts
        result = results[position]
        for key, verdict in _verdicts(result) if result else ():
            point = Point(position, verdict.status, measured_duration(verdict))
            found.setdefault(key, []).append(point)
            operators[key] = operators.get(key) or operator_of(verdict)
    order = {section: index for index, section in enumerate(_SECTIONS)}
    keys = sorted(found, key=lambda key: order[key[0]])
    return tuple(_expectation(key, operators[key], found[key][::-1]) for key in keys)


def _verdicts(result: RunResult) -> Iterable[tuple[tuple[str, str, int], Verdict]]:
    """Verdicts by section, name and number, as names need not be unique."""
    for section in _SECTIONS:
        seen: Counter[str] = Counter()
        for verdict in getattr(result, section):
            yield (section, verdict.name, seen[verdict.name]), verdict
            seen[verdict.name] += 1


def _expectation(key: tuple[str, str, int], operator: str, points: list[Point]) -> ExpectationTrend:
    section, name, number = key
    measured = [(index, point.seconds) for index, point in enumerate(points) if point.seconds is not None]
    values = [seconds for _, seconds in measured]
    changes = change_points(values) if operator == "within" else ()
    placed = tuple(ChangePoint(measured[c.index][0], c.before, c.after, c.p) for c in changes)
    bound = next((point.duration.bound for point in reversed(points) if point.duration), None)
    title = f"{name} ({number + 1})" if number else name
    return ExpectationTrend(section, title, operator, tuple(points), spread(values), bound, placed)
