"""Comparisons for programs: one JSON object; times in seconds, null for what never happened or is unknown. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chaos.core.errors import Exit
from chaos.reports.comparison.comparison import Comparison, ExpectationRow
from chaos.reports.comparison.phrases import headline
from chaos.verdicts.outcome.acceptance import Row, mechanism_of
from chaos.verdicts.outcome.measure import Measure
from chaos.verdicts.outcome.prediction import Band

FORMAT = 1  # another one if a key is renamed, removed or gets another meaning; keys may be added


def comparison_document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """All comparisons as JSON types."""
    return {
        "format": FORMAT,
        "exit_code": int(max((each.exit_code for each in comparisons), default=Exit.HELD)),
        "simulated": any(each.simulated for each in comparisons),
        "comparisons": [_comparison(each) for each in comparisons],
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    side, expected = comparison.side, comparison.expected
    return {
        "headline": headline(comparison),
        "exit_code": int(comparison.exit_code),
        "experiment": side.experiment,
        "targets": {target: list(nodes) for target, nodes in side.targets.items()},
        "real": {"name": side.name, "simulated": side.simulated, "observed": round(side.outcome.observed, 3)},
        "predicted": {
            "name": expected.name,
            "simulated": expected.simulated,
            "outcomes": expected.outcomes,
            "horizon": round(expected.horizon, 3),
        },
        "expectations": [_expectation(row) for row in comparison.expectations],
        "measures": [_row(row, comparison.follows.get(row.measure)) for row in comparison.rows],
        "notes": list(comparison.notes),
    }


def _row(row: Row, follows: Measure | None) -> dict[str, Any]:
    return {
        "kind": str(row.measure.kind),
        "subject": row.measure.subject,
        "what": row.measure.what,
        "seconds": row.seconds,
        "band": _band(row.band) if row.band else None,
        "accepted": [row.low, row.high] if row.band else None,
        "standing": row.standing.name.lower(),
        "outside": row.standing.is_outside,
        "follows": str(follows) if follows else None,
        "mechanism": {"text": mechanism_of(row.measure).text, "facts": mechanism_of(row.measure).facts},
    }


def _band(band: Band) -> dict[str, Any]:
    return {
        "happened": band.happened,
        "outcomes": band.outcomes,
        "low": band.low,
        "p5": band.p5,
        "p50": band.p50,
        "p95": band.p95,
        "high": band.high,
    }


def _expectation(row: ExpectationRow) -> dict[str, Any]:
    return {
        "section": row.section,
        "name": row.name,
        "status": row.status,
        "predicted": row.predicted.verdicts if row.predicted else None,
        "changed": row.changed,
        "seconds": row.seconds,
        "accepted": [row.low, row.high] if row.low is not None else None,
        "standing": row.standing.name.lower(),
    }
