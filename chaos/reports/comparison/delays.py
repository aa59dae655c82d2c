"""Delays that go on: a measure that is as late as one before it says nothing new. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.verdicts.outcome.acceptance import Row, Standing, time_of_end
from chaos.verdicts.outcome.measure import Measure

_SHIFTED = (Standing.LATE, Standing.EARLY)


def followed(rows: Sequence[Row]) -> dict[Measure, Measure]:
    """Measures outside of their bands, each with the first one that is as late or as early, and came before it.

    A measure follows another if it would lie in its accepted interval if that were moved by as much as the other was
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
