"""One side of a comparison: a run or a recording, what was expected of it, and what may have delayed it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from chaos.core.errors import NodefallError
from chaos.core.recording import ActionPhase
from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.reports.history.trend import expectation_trends
from chaos.verdicts.outcome.acceptance import RESOLUTION, SIMULATED_RESOLUTION
from chaos.verdicts.outcome.measure import Measure, Names, Outcome
from chaos.verdicts.outcome.outcome import fault_time, outcome_of
from chaos.verdicts.outcome.prediction import Band, ExpectationBand, Prediction, bands

_PERIOD = 10.4  # seconds between two renewals of a Lease (facts 5.1)
_GAP = 15.0  # seconds; five seconds later than usual


@dataclass(frozen=True, slots=True)
class Stall:
    """No Lease of most untouched nodes was renewed for ``length`` seconds from ``at``, in seconds after the fault."""

    at: float
    length: float
    nodes: int
    of: int

    def __str__(self) -> str:
        return (
            f"{self.nodes} of {self.of} untouched nodes did not renew their Leases for {self.length:.0f} s, "
            f"{max(0.0, self.at):.0f} s after the fault: the API server or its clients stalled"
        )


def stalled_before(stalls: Sequence[Stall], seconds: float) -> float:
    """Seconds by which stalls may have delayed what happened then."""
    return sum(min(stall.length, seconds - max(0.0, stall.at)) for stall in stalls if stall.at < seconds)


def stalls_of(timeline: Timeline, start: float) -> Iterator[Stall]:
    """Each gap in the Leases of most nodes that no step touches, after ``start``."""
    victims = set(timeline.meta.get("targets") or {}) | {entry.node for entry, _ in timeline.actions if entry.node}
    healthy = [
        [version.t for version in history.peek() if version.t >= start - _PERIOD]
        for name, history in timeline.leases.items()
        if name not in victims
    ]
    gaps = [
        [(before, after) for before, after in pairwise(times) if after - before > _GAP] for times in healthy if times
    ]
    for before, after in gaps[0] if gaps else ():
        common = sum(any(b < after and a > before for b, a in other) for other in gaps)
        if 2 * common > len(gaps):
            yield Stall(before - start, after - before, common, len(gaps))


_RUNS_ON = ("partition", "kubelet-freeze")  # actions during which a kubelet runs on without the API server


class NotComparableError(NodefallError):
    """The sides are not of the same experiment and victims."""


@dataclass(frozen=True, slots=True)
class Side:
    """A run or a recording. ``experiment_hash``: SHA-256 of the experiment's file, "" if unknown, as ``experiment``.

    ``targets``: nodes by target. ``actions``: kind and node of each action that began, in order; nodes have their names
    in measures. ``fault``: epoch seconds. ``stalls``: what may have delayed all that came after.
    """

    name: str
    simulated: bool
    experiment: str
    experiment_hash: str
    targets: Mapping[str, tuple[str, ...]]
    actions: tuple[tuple[str, str], ...]
    fault: float
    outcome: Outcome
    result: RunResult | None = None
    stalls: tuple[Stall, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What may have moved its times."""
        return tuple(map(str, self.stalls))

    @property
    def has_late_return(self) -> bool:
        """Whether a kubelet ran on without the API server, so that its return is later than is simulated."""
        return any(action in _RUNS_ON for action, _ in self.actions)

    def expectations(self) -> tuple[ExpectationBand, ...]:
        """Its verdicts and durations, as those of one seed."""
        return _expectations([self])


@dataclass(frozen=True, slots=True)
class Expected:
    """What was predicted, or happened in other runs. ``targets``, ``actions``: None if they differ or are unknown."""

    name: str
    simulated: bool
    experiment: str
    experiment_hash: str
    targets: Mapping[str, tuple[str, ...]] | None
    actions: tuple[tuple[str, str], ...] | None
    outcomes: int
    horizon: float
    measures: Mapping[Measure, Band]
    expectations: tuple[ExpectationBand, ...] = ()
    notes: tuple[str, ...] = field(default=())


def side_of(name: str, timeline: Timeline, result: RunResult | None = None) -> Side:
    """A side of its timeline. Raises NotComparableError for one without an action."""
    fault = fault_time(timeline)
    if fault is None:
        raise NotComparableError(f"{name} cannot be compared: nothing was done to the cluster, so there is no fault")
    meta, names = timeline.meta, Names.of_run(timeline.meta)
    nodes: dict[str, list[str]] = {}
    for node, target in sorted((meta.get("targets") or {}).items()):
        nodes.setdefault(str(target), []).append(node)
    actions = tuple(
        (entry.type, names.node(entry.node)) for entry, record in timeline.actions if record.phase == ActionPhase.BEGIN
    )
    return Side(
        name=name,
        simulated=bool(meta.get("simulated")),
        experiment=str(meta.get("experiment") or ""),
        experiment_hash=str(meta.get("experimentHash") or ""),
        targets={target: tuple(found) for target, found in nodes.items()},
        actions=actions,
        fault=fault,
        outcome=outcome_of(timeline, fault),
        result=result,
        stalls=tuple(stalls_of(timeline, fault)),
    )


def expected_of_sides(sides: Sequence[Side]) -> Expected:
    """What earlier runs show together, the oldest first."""
    first = sides[0]
    names = sides[0].name if len(sides) == 1 else f"{len(sides)} runs since {first.name}"
    return Expected(
        name=names,
        simulated=all(side.simulated for side in sides),
        experiment=first.experiment,
        experiment_hash=first.experiment_hash,
        targets=first.targets,
        actions=first.actions,
        outcomes=len(sides),
        horizon=min(side.outcome.observed for side in sides),
        measures=bands(side.outcome for side in sides),
        expectations=_expectations(sides),
        notes=tuple(f"{side.name}: {note}" for side in sides for note in side.notes),
    )


def expected_of_prediction(prediction: Prediction, name: str) -> Expected:
    """What rehearsals predict. Raises NotComparableError for rehearsals of which none had a fault."""
    if prediction.horizon <= 0:
        raise NotComparableError(f"{name} predicts nothing: none of its {len(prediction.seeds)} rehearsals had a fault")
    limits = [f"not in the prediction: {text}" for text in prediction.not_modelled]
    changes = [f"predicted with a change: {text}" for text in prediction.what_if]
    return Expected(
        name=name,
        simulated=True,
        experiment=prediction.experiment,
        experiment_hash=prediction.experiment_hash,
        targets=prediction.targets or None,
        actions=None,
        outcomes=len(prediction.seeds),
        horizon=prediction.horizon,
        measures={band.measure: band for band in prediction.measures},
        expectations=prediction.expectations,
        notes=(*changes, *limits),
    )


def resolution_of(side: Side, expected: Expected) -> float:
    """Seconds to which the times of the two sides can be compared."""
    return SIMULATED_RESOLUTION if side.simulated and expected.simulated else RESOLUTION


def check_comparable(side: Side, expected: Expected, *, other_victims: bool = False) -> None:
    """Raises NotComparableError for another experiment, other victims, or other actions."""
    ours = side.experiment_hash or side.experiment
    theirs = expected.experiment_hash or expected.experiment
    if side.experiment != expected.experiment:
        names = f"{side.experiment or 'no experiment'} and {expected.experiment or 'no experiment'}"
        raise NotComparableError(f"{side.name} cannot be compared with {expected.name}: they are runs of {names}")
    if side.experiment_hash and expected.experiment_hash and ours != theirs:
        raise NotComparableError(
            f"{side.name} cannot be compared with {expected.name}: the file of {side.experiment} has changed",
            hint="compare runs of one version of the file, or rehearse the run with --snapshot",
        )
    if expected.targets is not None and side.targets != expected.targets and not other_victims:
        raise NotComparableError(
            f"{side.name} cannot be compared with {expected.name}: other victims, "
            f"{_victims(side.targets)} and {_victims(expected.targets)}",
            hint="give --other-victims to compare them anyway",
        )
    if expected.actions is not None and not side.experiment and side.actions != expected.actions:
        raise NotComparableError(
            f"{side.name} cannot be compared with {expected.name}: other actions, "
            f"{_actions(side.actions)} and {_actions(expected.actions)}"
        )


def _expectations(sides: Sequence[Side]) -> tuple[ExpectationBand, ...]:
    found = []
    for trend in expectation_trends([side.result for side in sides]):
        durations = [point.duration for point in trend.points if point.duration]
        seconds = sorted(each.seconds for each in durations if not each.is_exceeded)
        verdicts = {str(status): count for status, count in sorted(trend.counts.items())}
        low, high = (seconds[0], seconds[-1]) if seconds else (None, None)
        band = ExpectationBand(trend.section, trend.name, verdicts, trend.operator, len(seconds), low=low, high=high)
        found.append(band)
    return tuple(found)


def _victims(targets: Mapping[str, tuple[str, ...]]) -> str:
    return "; ".join(f"{target}: {', '.join(nodes)}" for target, nodes in sorted(targets.items())) or "none"


def _actions(actions: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{action} on {node}" if node else action for action, node in actions) or "none"
