"""Measured durations of each expectation of an experiment over its runs, and their statistics.

Runs that are not comparable are not mixed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from chaos.core.result import SHORT_UID, RunResult, StoredRun
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.outline import Duration, measured_duration, operator_of


@dataclass(frozen=True, slots=True)
class Spread:
    """Quartiles in seconds; infinite where so many values exceed their bound that the quartile is one of them."""

    count: int
    first: float
    median: float
    third: float


def spread(values: Sequence[float]) -> Spread | None:
    """The quartiles of ``values``, interpolated linearly between neighbours; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return Spread(len(ordered), *(_quantile(ordered, share) for share in (0.25, 0.5, 0.75)))


def _quantile(ordered: Sequence[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    if position == low:
        return ordered[low]
    if math.isinf(ordered[low + 1]):
        return math.inf
    return ordered[low] + (position - low) * (ordered[low + 1] - ordered[low])


MAX_P = 0.05  # probability of a change by chance; the approximation is conservative: 1 to 3 % for 12 to 50 values
MIN_SHIFT = 0.1  # of the median before, below which a change is of no practical meaning
MIN_SECONDS = 0.1  # likewise


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """``index``: of the first value after the change. ``before``, ``after``: medians of the parts beside it."""

    index: int
    before: float
    after: float
    p: float


def change_points(values: Sequence[float]) -> tuple[ChangePoint, ...]:
    """The change points of ``values``, in their order. At least 12 values are needed for one."""
    cuts = sorted(_cuts(values, 0), key=lambda cut: cut[0])
    ends = [0, *(index for index, _ in cuts), len(values)]
    found = []
    for (index, p), begin, end in zip(cuts, ends, ends[2:], strict=False):
        before, after = _median(values[begin:index]), _median(values[index:end])
        if _is_meant(before, after):
            found.append(ChangePoint(index, before, after, p))
    return tuple(found)


def _cuts(values: Sequence[float], offset: int) -> list[tuple[int, float]]:
    """Index and probability of the changes in ``values`` and in both parts, with ``offset`` added to the index."""
    index, p = pettitt(values)
    if p > MAX_P or not _is_meant(_median(values[:index]), _median(values[index:])):
        return []
    return [(index + offset, p), *_cuts(values[:index], offset), *_cuts(values[index:], offset + index)]


def pettitt(values: Sequence[float]) -> tuple[int, float]:
    """The index at which a change is most likely, and the probability of so clear a one by chance; (0, 1) if none."""
    count = len(values)
    if count < 2:
        return 0, 1.0
    sums = accumulate(_ranks(values))
    statistics = [abs(2 * total - t * (count + 1)) for t, total in enumerate(sums, 1)]
    greatest = max(statistics[:-1])
    p = 2 * math.exp(-6 * greatest**2 / (count**3 + count**2))
    return (statistics.index(greatest) + 1, min(1.0, p)) if greatest else (0, 1.0)


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values have the mean of theirs."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values), 1):
        places.setdefault(value, []).append(place)
    return [sum(places[value]) / len(places[value]) for value in values]


def _median(values: Sequence[float]) -> float:
    found = spread(values)
    return found.median if found else math.nan


def _is_meant(before: float, after: float) -> bool:
    """Whether the medians differ by enough to be reported."""
    if math.isinf(before) or math.isinf(after):
        return before != after
    return abs(after - before) >= max(MIN_SECONDS, MIN_SHIFT * before)


_BLOCKS, _DIGITS = "▁▂▃▄▅▆▇█", "12345678"
EXCEEDED, UNKNOWN = "✗", "?"


def sparkline(
    values: Sequence[float | None], encoding: str = "utf-8", bounds: tuple[float, float] | None = None
) -> str:
    """``values`` from the least to the greatest as eight heights; infinity as ``✗``, None as ``?``.

    ``bounds``: the values of the lowest and the highest, instead of those given. Digits, and x, if ``encoding`` lacks
    the characters. Equal values are in the middle.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    low, high = bounds or ((min(known), max(known)) if known else (0.0, 0.0))

    def height(value: float) -> int:
        return max(0, min(7, int((value - low) / (high - low) * 8))) if high > low else 3

    text = "".join(
        UNKNOWN if value is None else EXCEEDED if math.isinf(value) else _BLOCKS[height(value)] for value in values
    )
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(str.maketrans(_BLOCKS + EXCEEDED, _DIGITS + "x"))
    return text


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
    """The verdict of one run. ``status``: as views show it. ``run``: its position among the runs of the trend.

    ``duration``: None if it was not measured.
    """

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
            point = Point(position, verdict.shown, measured_duration(verdict))
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
