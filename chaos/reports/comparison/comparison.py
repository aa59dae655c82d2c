"""A comparison: measures beside their bands, verdicts beside predicted ones, and what surprises most. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chaos.core.errors import Exit
from chaos.core.verdict import Status
from chaos.reports.comparison.side import Expected, Side, resolution_of, stalled_before
from chaos.verdicts.outcome.acceptance import SYNC, Row, Standing, Terms, compare_outcome, time_of_end, widening
from chaos.verdicts.outcome.measure import Kind, Measure
from chaos.verdicts.outcome.prediction import Band, ExpectationBand

_SHIFTED = (Standing.LATE, Standing.EARLY)


def followed(rows: Sequence[Row]) -> dict[Measure, Measure]:
    """Measures outside their bands, each with the earliest measure that explains it.

    A measure follows an earlier one if it would lie in its accepted interval, shifted by as much as the earlier one was
    away from its median; a chain of such measures counts as one. It is about times only: what follows need not be
    caused by it.
    """
    seconds = {row.measure: row.seconds for row in rows if row.seconds is not None}
    shifted = [row for row in rows if row.standing in _SHIFTED]
    shifted.sort(key=lambda row: (time_of_end(row.measure, seconds), row.measure))
    roots: dict[Measure, Measure] = {}
    for number, row in enumerate(shifted):
        for before in reversed(shifted[:number]):
            if before.standing is row.standing and _is_as_late(row, before):
                roots[row.measure] = roots.get(before.measure, before.measure)
                break
    return roots


def _is_as_late(row: Row, before: Row) -> bool:
    if row.seconds is None or before.seconds is None or before.band is None:
        return False
    shift = before.seconds - before.band.p50
    return row.low + shift <= row.seconds <= row.high + shift


_WEIGHTS = (Kind.WORKLOAD, Kind.VOLUME, Kind.REPLACEMENT, Kind.POD, Kind.NODE, Kind.ZONE)
_DECIDED = (Status.HELD, Status.VIOLATED, Status.KNOWN)


@dataclass(frozen=True, slots=True)
class ExpectationRow:
    """One expectation. ``status``: the real verdict, "" if it has none; ``predicted``: None if it was not predicted.

    ``seconds``: its real duration, ``low`` and ``high`` the accepted interval, None if none was measured.
    """

    section: str
    name: str
    status: str
    predicted: ExpectationBand | None
    seconds: float | None
    low: float | None
    high: float | None
    changed: bool
    standing: Standing


@dataclass(frozen=True, slots=True)
class Comparison:
    """``side`` is what really happened, or the newer run. ``follows``: as :func:`~.delays.followed` returns it."""

    side: Side
    expected: Expected
    rows: tuple[Row, ...]
    expectations: tuple[ExpectationRow, ...]
    follows: Mapping[Measure, Measure] = field(default_factory=dict)

    @property
    def outside(self) -> list[Row]:
        """Measures that left their bands, in the order of time."""
        return [row for row in self.rows if row.standing.is_outside]

    @property
    def first(self) -> list[Row]:
        """Measures that left their bands, without those that are only as late as one before them."""
        return [row for row in self.outside if row.measure not in self.follows]

    def followers(self, row: Row) -> list[Row]:
        """Measures that are as late as that one, or as early, in the order of time."""
        return [each for each in self.outside if self.follows.get(each.measure) == row.measure]

    def stalled(self, row: Row) -> float:
        """Seconds for which the API server or its clients stalled before a measure, if that may be why it is late.

        A predicted measure that did not happen may have come after the end of the observation.
        """
        observed = self.side.outcome.observed
        if row.standing is Standing.LATE and row.seconds is not None:
            stalled, beyond = stalled_before(self.side.stalls, row.seconds), row.beyond
        elif row.standing is Standing.MISSING:
            stalled, beyond = stalled_before(self.side.stalls, observed), observed - row.high
        else:
            return 0.0
        return stalled if beyond <= stalled else 0.0

    @property
    def changed(self) -> list[ExpectationRow]:
        """Expectations with a verdict or a duration that was not predicted."""
        return [row for row in self.expectations if row.changed or row.standing.is_outside]

    @property
    def exit_code(self) -> Exit:
        """Whether reality left the predicted band."""
        return Exit.VIOLATED if self.outside or self.changed else Exit.HELD

    @property
    def simulated(self) -> bool:
        """Whether a side is."""
        return self.side.simulated or self.expected.simulated

    @property
    def notes(self) -> tuple[str, ...]:
        """What may have moved times, and what the prediction lacks."""
        return (*self.side.notes, *self.expected.notes)


def compare(side: Side, expected: Expected) -> Comparison:
    """Compare a side with what was expected of it; :func:`check_comparable` is for callers."""
    terms = Terms(expected.horizon, resolution_of(side, expected), side.has_late_return)
    rows = compare_outcome(side.outcome, expected.measures, terms)
    return Comparison(side, expected, tuple(rows), tuple(_expectation_rows(side, expected, terms)), followed(rows))


def most_surprising(rows: Sequence[Row]) -> Row | None:
    """The row that differs most: a state before a time, that of a workload before that of a pod, the earlier one."""
    found = [row for row in rows if row.standing.is_outside]
    states = [row for row in found if row.standing.is_state]
    if states:
        return min(states, key=lambda row: (_WEIGHTS.index(row.measure.kind), _time(row), row.measure))
    return max(found, key=lambda row: (row.beyond, -_time(row)), default=None)


def _time(row: Row) -> float:
    return row.seconds if row.seconds is not None else row.band.p50 if row.band else 0.0


def _expectation_rows(side: Side, expected: Expected, terms: Terms) -> list[ExpectationRow]:
    if side.result is None or not expected.expectations:
        return []
    predicted = {(band.section, band.name): band for band in expected.expectations}
    rows = []
    for real in side.expectations():
        band = predicted.get((real.section, real.name))
        status = next(iter(real.verdicts), "")
        is_new = band is not None and status in _DECIDED and status not in band.verdicts
        low, high = _accepted(band, terms) if band else (None, None)
        standing = Standing.UNKNOWN
        if real.low is not None and low is not None and high is not None:
            standing = _standing(real.low, low, high)
        elif status in _DECIDED and band is not None:
            standing = Standing.INSIDE
        rows.append(ExpectationRow(real.section, real.name, status, band, real.low, low, high, is_new, standing))
    return rows


def _accepted(band: ExpectationBand, terms: Terms) -> tuple[float | None, float | None]:
    if band.low is None or band.high is None:
        return None, None
    as_measure = Band(
        Measure(Kind.WORKLOAD, "", ""), band.measured, band.measured, band.low, band.low, band.low, band.high, band.high
    )
    margin = terms.resolution + widening(as_measure)
    late = SYNC if terms.late_return else 0.0
    return max(0.0, round(band.low - margin, 3)), round(band.high + margin + late, 3)


def _standing(seconds: float, low: float, high: float) -> Standing:
    if low <= seconds <= high:
        return Standing.INSIDE
    return Standing.EARLY if seconds < low else Standing.LATE
