"""A rehearsal for a terminal."""

from __future__ import annotations

from chaos.core.text import align_columns, escape_control
from chaos.rehearsal.forecast.document import Rehearsal, Runs
from chaos.rehearsal.forecast.ranking import EXPLANATION
from chaos.rehearsal.forecast.rows import (
    VICTIM_HEAD,
    how_often,
    side_by_side,
    source_text,
    times,
    verdicts,
    victim_cells,
)
from chaos.rehearsal.forecast.summary import risk_sentence
from chaos.reports.run.outline import SIMULATED

_SHOWN = 20


def rehearsal_text(rehearsal: Rehearsal) -> list[str]:
    """The lines, the most important one first; what others wrote, as in a snapshot, has no control characters."""
    runs = rehearsal.runs
    lines = [rehearsal.headline, "", f"{rehearsal.experiment}: {how_often(rehearsal)}, on {source_text(rehearsal)}"]
    lines += [f"what if: {change}" for change in runs.changes]
    lines += _victims(runs) if runs.victims else _expectations(runs)
    if runs.risks and not runs.victims:
        lines += ["", *_some([risk_sentence(risk) for risk in runs.risks])]
    lines += [f"refused in {count} of {runs.count} runs: {reason}" for reason, count in runs.refused.items()]
    if rows := side_by_side(rehearsal):
        lines += ["", *align_columns([("", "WITHOUT", "WITH"), *rows])]
    lines += ["", *(f"not in the answer: {line}" for line in rehearsal.limits), SIMULATED]
    return [escape_control(line) for line in lines]


def _expectations(runs: Runs) -> list[str]:
    head = ("EXPECTATION", "VERDICTS", "P5 .. P50 .. P95")
    rows = [(each.name, verdicts(each), times(each)) for each in runs.expectations]
    return ["", *align_columns([head, *rows])] if rows else []


def _victims(runs: Runs) -> list[str]:
    head = ("VICTIM", "ZONE", *(name.upper() for name in VICTIM_HEAD))
    rows = [(rank.victim, rank.zone, *victim_cells(rank)) for rank in runs.victims[:_SHOWN]]
    more = [f"and {len(runs.victims) - _SHOWN} more"] if len(runs.victims) > _SHOWN else []
    why = [f"{rank.victim}: {rank.why}" for rank in runs.victims[:3] if rank.score]
    return ["", *align_columns([head, *rows]), *more, "", *why, f"points: {EXPLANATION}"]


def _some(lines: list[str]) -> list[str]:
    return lines[:_SHOWN] + ([f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])
