"""A comparison for programs: one object of JSON types, whose schema ``nodefall schema comparison`` prints. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from chaos.core.errors import Exit
from chaos.core.moments import rounded
from chaos.reports.comparison.comparison import Comparison, ExpectationRow
from chaos.reports.comparison.phrases import headline
from chaos.verdicts.outcome.acceptance import Row, mechanism_of
from chaos.verdicts.outcome.measure import Measure

VERSION = 1  # another one if a key is renamed, removed or gets another meaning; keys may be added


class RealSide(Struct, frozen=True):
    """What really happened; ``observed``: seconds after the fault that were observed."""

    name: str
    simulated: bool
    observed: float


class PredictedSide(Struct, frozen=True):
    """What was predicted from ``outcomes`` runs; ``horizon``: seconds after the fault."""

    name: str
    simulated: bool
    outcomes: int
    horizon: float


class ComparedExpectation(Struct, frozen=True):
    """``predicted``: number of verdicts by status. ``accepted``: from and to, in seconds."""

    section: str
    name: str
    status: str
    predicted: Mapping[str, int] | None
    changed: bool
    seconds: float | None
    accepted: tuple[float | None, float | None] | None
    standing: str


class MeasureBand(Struct, frozen=True):
    """Seconds over the ``happened`` of ``outcomes`` in which the measure came true."""

    happened: int
    outcomes: int
    low: float
    p5: float
    p50: float
    p95: float
    high: float


class Mechanism(Struct, frozen=True):
    """What causes a measure, and the facts about Kubernetes that say so."""

    text: str
    facts: str


class ComparedMeasure(Struct, frozen=True):
    """A measure beside its band. ``follows``: the measure from whose delay this one follows."""

    kind: str
    subject: str
    what: str
    seconds: float | None
    band: MeasureBand | None
    accepted: tuple[float, float] | None
    standing: str
    outside: bool
    follows: str | None
    mechanism: Mechanism


class ComparedRun(Struct, frozen=True):
    """One run beside its prediction, or beside another run."""

    headline: str
    exit_code: int
    experiment: str
    targets: dict[str, list[str]]
    real: RealSide
    predicted: PredictedSide
    expectations: list[ComparedExpectation]
    measures: list[ComparedMeasure]
    notes: list[str]


class ComparisonDocument(Struct, frozen=True):
    """All comparisons of a command. ``format`` is deprecated: it is the version."""

    exit_code: int
    simulated: bool
    comparisons: list[ComparedRun]
    version: int = VERSION
    format: int = VERSION


def comparison_document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """All comparisons as JSON types; durations to the microsecond."""
    code = int(max((each.exit_code for each in comparisons), default=Exit.HELD))
    simulated = any(each.simulated for each in comparisons)
    document = ComparisonDocument(code, simulated, [_comparison(each) for each in comparisons])
    return dict(rounded(to_builtins(document)))


def _comparison(comparison: Comparison) -> ComparedRun:
    side, expected = comparison.side, comparison.expected
    return ComparedRun(
        headline(comparison),
        int(comparison.exit_code),
        side.experiment,
        {target: list(nodes) for target, nodes in side.targets.items()},
        RealSide(side.name, side.simulated, round(side.outcome.observed, 3)),
        PredictedSide(expected.name, expected.simulated, expected.outcomes, round(expected.horizon, 3)),
        [_expectation(row) for row in comparison.expectations],
        [_measure(row, comparison.follows.get(row.measure)) for row in comparison.rows],
        list(comparison.notes),
    )


def _measure(row: Row, follows: Measure | None) -> ComparedMeasure:
    band, mechanism = row.band, mechanism_of(row.measure)
    return ComparedMeasure(
        str(row.measure.kind),
        row.measure.subject,
        row.measure.what,
        row.seconds,
        MeasureBand(band.happened, band.outcomes, band.low, band.p5, band.p50, band.p95, band.high) if band else None,
        (row.low, row.high) if band else None,
        row.standing.name.lower(),
        row.standing.is_outside,
        str(follows) if follows else None,
        Mechanism(mechanism.text, mechanism.facts),
    )


def _expectation(row: ExpectationRow) -> ComparedExpectation:
    return ComparedExpectation(
        row.section,
        row.name,
        row.status,
        row.predicted.verdicts if row.predicted else None,
        row.changed,
        row.seconds,
        (row.low, row.high) if row.low is not None else None,
        row.standing.name.lower(),
    )
