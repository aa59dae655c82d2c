"""The first line: the most important thing."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.core.duration import format_duration
from chaos.rehearsal.forecast.document import Runs
from chaos.rehearsal.forecast.finding import FindingKind
from chaos.rehearsal.forecast.summary import Risk
from chaos.verdicts.outcome.prediction import ExpectationBand

_VERBS = {
    FindingKind.NO_REPLICA_LEFT: "loses all {count} pods at once",
    FindingKind.SINGLE_REPLICA: "loses its only pod",
    FindingKind.POD_LOST: "is lost, and nothing replaces it",
    FindingKind.NO_ROOM: "has {count} pods for which there is no room",
    FindingKind.BUDGET_OVERDRAWN: "is a budget overdrawn by {count}",
    FindingKind.STUCK_TERMINATING: "has {count} pods stuck Terminating",
    FindingKind.VOLUME_WAIT: "waits for a volume",
    FindingKind.EVICTION_DELAYED: "is evicted late or not at all",
}


def headline(runs: Runs, each: str) -> str:
    """One sentence. ``each``: node or zone, "" without victims."""
    if runs.victims:
        return _of_victims(runs, each)
    if runs.risks:
        return _of_risk(runs.risks[0])
    if worst := _worst(runs.expectations):
        return f"violated{_share(worst.verdicts['violated'], runs.count)}: {worst.name}"
    if runs.refused:
        reason = next(iter(runs.refused))  # the most frequent one
        return f"refused{_share(sum(runs.refused.values()), runs.count)}: {reason}"
    held = runs.endings.get("held", 0)
    if held == runs.count:
        return f"every expectation held, and no workload was without a serving pod{_share(held, runs.count)}"
    ending = max((count, name) for name, count in runs.endings.items() if name != "held")
    return f"{ending[1]}{_share(ending[0], runs.count)}: no workload was without a serving pod"


def _of_risk(risk: Risk) -> str:
    length = f" for {format_duration(round(risk.p50))}" if risk.p50 else ""
    lasting = " and to the end of the run" if risk.lasting else ""
    verb = _VERBS[risk.kind].format(count=risk.count).replace("has 1 pods", "has a pod")
    return f"{risk.subject} {verb}{length}{lasting}{_share(risk.runs, risk.of)}"


def _of_victims(runs: Runs, each: str) -> str:
    first = runs.victims[0]
    if first.refused:
        return f"no {each} can be the victim: {first.refused}"
    lost = [rank for rank in runs.victims if not rank.refused]
    refused, hurt = len(runs.victims) - len(lost), sum(rank.score > 0 for rank in lost)
    others = f"; {refused} cannot be the victim" if refused else ""
    if not hurt:
        violated = sum("violated" in rank.endings for rank in lost)
        verdict = f", but the experiment is violated with {violated}" if violated else ""
        return f"no {each} hurts: every workload keeps a serving pod, whichever of {len(lost)} is lost{verdict}{others}"
    name = f"zone {first.victim}" if each == "zone" else first.victim
    return f"{name} hurts most: {first.why} ({hurt} of {len(lost)} {each}s hurt{others})"


def _worst(expectations: Sequence[ExpectationBand]) -> ExpectationBand | None:
    violated = [each for each in expectations if each.verdicts.get("violated")]
    return max(violated, key=lambda each: each.verdicts["violated"], default=None)


def _share(count: int, of: int) -> str:
    return f" in {count} of {of} runs" if of > 1 else ""
