"""What tables of a rehearsal have in common: cells, in words."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.core.duration import format_duration
from chaos.rehearsal.forecast.document import Rehearsal, Runs
from chaos.rehearsal.forecast.ranking import VictimRank
from chaos.verdicts.outcome.prediction import ExpectationBand

STATUSES = ("held", "violated", "inconclusive")
VICTIM_HEAD = ("Points", "Unavailable", "Workloads gone", "Budgets overdrawn", "No room", "Stuck", "Experiment")


def times(band: ExpectationBand) -> str:
    """``p5 .. p50 .. p95`` of the measured durations, "" without any."""
    if band.p5 is None or band.p50 is None or band.p95 is None:
        return ""
    found = [format_seconds(each) for each in (band.p5, band.p50, band.p95)]
    return found[1] if found[0] == found[2] else f"{found[0]} .. {found[1]} .. {found[2]}"


def format_seconds(seconds: float) -> str:
    """With a tenth below a minute."""
    return format_duration(round(seconds, 1) if seconds < 60 else round(seconds))


def verdicts(band: ExpectationBand) -> str:
    """``18 held, 2 violated``."""
    return ", ".join(f"{band.verdicts[status]} {status}" for status in STATUSES if band.verdicts.get(status))


def endings(runs: Runs) -> str:
    """``18 held, 2 violated``, of whole runs."""
    return ", ".join(f"{count} {ending}" for ending, count in sorted(runs.endings.items(), key=lambda item: -item[1]))


def victim_cells(rank: VictimRank) -> tuple[str, ...]:
    """The cells of VICTIM_HEAD; those that are zero are empty."""
    numbers = (rank.workloads, rank.budgets, rank.no_room, rank.stuck)
    ending = ", ".join(name if len(rank.endings) == 1 else f"{n} {name}" for name, n in rank.endings.items())
    unavailable = format_duration(round(rank.unavailable)) if rank.unavailable else ""
    return f"{rank.score:g}", unavailable, *(str(number or "") for number in numbers), ending


def source_text(rehearsal: Rehearsal) -> str:
    """What it was rehearsed on."""
    if rehearsal.snapshot_hash:
        return f"a copy of {rehearsal.snapshot} (Kubernetes {rehearsal.kubernetes})"
    return f"{rehearsal.snapshot} (Kubernetes {rehearsal.kubernetes})"


def how_often(rehearsal: Rehearsal) -> str:
    """``20 seeds``, ``each of 12 nodes, 1 seed``."""
    seeds = f"{len(rehearsal.seeds)} seed" + ("s" if len(rehearsal.seeds) > 1 else "")
    victims = f"each of {len(rehearsal.runs.victims)} {rehearsal.each}s, " if rehearsal.each else ""
    return f"{victims}{seeds}"


def side_by_side(rehearsal: Rehearsal) -> list[tuple[str, str, str]]:
    """What differs between the runs without and with the changes: name, without, with."""
    before, after = rehearsal.without, rehearsal.runs
    if before is None:
        return []
    rows = [("runs", endings(before), endings(after))]
    rows += _paired({each.name: _band_cell(each) for each in before.expectations}, after.expectations)
    risks = {f"{each.title}: {each.subject}": _risk_cell(each.length, each.count, each.share) for each in before.risks}
    others = {f"{each.title}: {each.subject}": _risk_cell(each.length, each.count, each.share) for each in after.risks}
    rows += [(name, risks.get(name, "no"), others.get(name, "no")) for name in dict.fromkeys([*risks, *others])]
    ranks, ranked = ({rank.victim: f"{rank.score:g} points" for rank in runs.victims} for runs in (before, after))
    rows += [(name, ranks.get(name, "not there"), ranked.get(name, "not there")) for name in {**ranks, **ranked}]
    return rows


def _paired(before: dict[str, str], after: Sequence[ExpectationBand]) -> list[tuple[str, str, str]]:
    cells = {each.name: _band_cell(each) for each in after}
    return [(name, before.get(name, ""), cells.get(name, "")) for name in dict.fromkeys([*before, *cells])]


def _band_cell(band: ExpectationBand) -> str:
    return ", ".join(part for part in (verdicts(band), times(band)) if part)


def _risk_cell(length: str, count: int, share: str) -> str:
    pods = f"{count} pod" + ("s" if count != 1 else "")
    return ", ".join(part for part in (pods, length, share) if part)
