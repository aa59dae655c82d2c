"""Shares and times over many runs; and which victim hurts most, by points that a reader can disagree with."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from chaos.core.duration import format_duration
from chaos.core.text import count_of
from chaos.rehearsal.forecast.sample import TITLES, Finding, FindingKind, Sample
from chaos.reports.history.trend import ExpectationTrend, expectation_trends
from chaos.verdicts.outcome.prediction import ExpectationBand, quantile

_ORDER = {kind: index for index, kind in enumerate(FindingKind)}
_OFTEN = 0.5  # share of runs from which a finding counts before those of graver kinds


class Risk(Struct, frozen=True):
    """One finding over all runs. ``count``: the most pods in a run. ``lasting``: runs in which it lasted to the end.

    ``p50`` and ``high`` are seconds, None for what has no length. ``detail`` is that of the worst run.
    """

    kind: FindingKind
    subject: str
    runs: int
    of: int
    count: int
    lasting: int
    p50: float | None
    high: float | None
    detail: str

    @property
    def title(self) -> str:
        """Name of the kind, for people."""
        return TITLES[self.kind]

    @property
    def length(self) -> str:
        """How long, for people; "" for what has no length."""
        if self.p50 is None or self.high is None:
            return ""
        shown = format_duration(round(self.p50))
        more = f", at most {format_duration(round(self.high))}" if round(self.high) > round(self.p50) else ""
        return f"{shown}{more}" + (" (until the end)" if self.lasting else "")

    @property
    def share(self) -> str:
        """In how many runs, for people; "" if there was only one."""
        return f"in {self.runs} of {self.of} runs" if self.of > 1 else ""


def risks_of(samples: Sequence[Sample]) -> list[Risk]:
    """Every finding of the runs with a fault, the most important first."""
    found: dict[tuple[FindingKind, str], list[tuple[int, Finding]]] = defaultdict(list)
    runs = [sample for sample in samples if sample.outcome]
    for run, sample in enumerate(runs):
        for finding in sample.findings:
            found[finding.kind, finding.subject].append((run, finding))
    risks = [_risk(findings, len(runs)) for findings in found.values()]
    return sorted(risks, key=_importance)


def _risk(numbered: Sequence[tuple[int, Finding]], of: int) -> Risk:
    """``numbered``: by run, of which one may have several, of workloads of other kinds with the same name."""
    findings = [finding for _, finding in numbered]
    worst = max(findings, key=lambda finding: (finding.lasts, finding.seconds or 0.0, finding.count, finding.detail))
    seconds = sorted(finding.seconds for finding in findings if finding.seconds is not None)
    return Risk(
        worst.kind,
        worst.subject,
        len({run for run, _ in numbered}),
        of,
        max(finding.count for finding in findings),
        len({run for run, finding in numbered if finding.lasts}),
        quantile(seconds, 0.5) if seconds else None,
        seconds[-1] if seconds else None,
        worst.detail,
    )


def _importance(risk: Risk) -> tuple[bool, int, int, float, str]:
    return risk.runs < _OFTEN * risk.of, _ORDER[risk.kind], -risk.runs, -(risk.high or 0.0), risk.subject


def risk_sentence(risk: Risk) -> str:
    """One line for people."""
    details = [part for part in (risk.length, risk.share) if part]
    return f"{risk.title}: {risk.subject}" + (f", {', '.join(details)}" if details else "") + f": {risk.detail}"


def risk_sentences(samples: Sequence[Sample]) -> list[str]:
    """One line for each risk, the most important first."""
    return [risk_sentence(risk) for risk in risks_of(samples)]


def expectation_bands(samples: Sequence[Sample]) -> tuple[ExpectationBand, ...]:
    """Verdicts and measured durations of each expectation; what exceeded its bound has no duration."""
    return tuple(_band(trend) for trend in expectation_trends([sample.result for sample in samples]))


def _band(trend: ExpectationTrend) -> ExpectationBand:
    measured = [point.duration for point in trend.points if point.duration]
    seconds = sorted(round(each.seconds, 3) for each in measured if not each.is_exceeded)
    verdicts = {str(status): count for status, count in sorted(trend.counts.items())}
    if not seconds:
        return ExpectationBand(trend.section, trend.name, verdicts, trend.operator)
    p5, p50, p95 = (quantile(seconds, share) for share in (0.05, 0.5, 0.95))
    times = (seconds[0], p5, p50, p95, seconds[-1])
    return ExpectationBand(trend.section, trend.name, verdicts, trend.operator, len(seconds), *times)


_GONE = (FindingKind.NO_REPLICA_LEFT, FindingKind.SINGLE_REPLICA)
_MOST_MINUTES = 10
# Points of each pod, budget or workload.
_POINTS = {
    FindingKind.NO_ROOM: 3,
    FindingKind.STUCK_TERMINATING: 3,
    FindingKind.POD_LOST: 3,
    FindingKind.VOLUME_WAIT: 2,
}
_OF_BUDGET, _OF_WORKLOAD = 5, 10
EXPLANATION = (
    f"{_OF_WORKLOAD} points for each workload without a serving pod, and 1 for each started minute of that, up to "
    f"{_MOST_MINUTES}; {_OF_BUDGET} for each disruption budget that is overdrawn; 3 for each pod that finds no room, "
    "stays Terminating or is not replaced; 2 for each pod that waits for a volume. Over several seeds, the mean."
)


class ScorePart(Struct, frozen=True):
    """Points of one kind, and what they are for."""

    points: float
    text: str


class VictimRank(Struct, frozen=True):
    """One victim. ``nodes``: its nodes; ``unavailable``: seconds without a serving pod, summed over workloads.

    ``refused``: why the experiment cannot be run on it with any seed, "" if it can. ``endings``: number of runs by how
    they ended. All else is about the runs that had a fault.
    """

    victim: str
    zone: str
    nodes: tuple[str, ...]
    score: float
    parts: tuple[ScorePart, ...]
    unavailable: float
    workloads: int
    budgets: int
    no_room: int
    stuck: int
    endings: dict[str, int]
    refused: str
    risks: tuple[Risk, ...]

    @property
    def why(self) -> str:
        """The points in words."""
        return self.refused or ", ".join(part.text for part in self.parts) or "every workload keeps a serving pod"


def rank_victims(
    samples: Sequence[Sample], nodes: Mapping[str, tuple[str, ...]], zones: Mapping[str, str]
) -> list[VictimRank]:
    """Victims, the one that hurts most first. ``nodes`` and ``zones``: of each victim."""
    by_victim: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_victim[sample.victim].append(sample)
    ranks = [_rank(victim, found, nodes[victim], zones.get(victim, "")) for victim, found in by_victim.items()]
    order = {name: index for index, name in enumerate(nodes)}
    return sorted(ranks, key=lambda rank: (bool(rank.refused), -rank.score, -rank.unavailable, order[rank.victim]))


def _rank(victim: str, samples: Sequence[Sample], nodes: tuple[str, ...], zone: str) -> VictimRank:
    endings: dict[str, int] = defaultdict(int)
    for sample in samples:
        endings[sample.ending] += 1
    refused = next((sample.refused for sample in samples if sample.refused), "")
    if lost := [sample for sample in samples if not sample.refused]:
        samples, refused = lost, ""
    scores = [score_of(sample) for sample in samples]
    parts = score_parts(samples[0]) if len(samples) == 1 else _mean_parts(samples)
    return VictimRank(
        victim,
        zone,
        nodes,
        round(sum(scores) / len(scores), 1),
        parts,
        round(_mean([_seconds_gone(sample) for sample in samples]), 1),
        max(_number(sample, *_GONE) for sample in samples),
        max(_number(sample, FindingKind.BUDGET_OVERDRAWN) for sample in samples),
        max(_pods(sample, FindingKind.NO_ROOM) for sample in samples),
        max(_pods(sample, FindingKind.STUCK_TERMINATING) for sample in samples),
        dict(sorted(endings.items())),
        refused,
        tuple(risks_of(samples)),
    )


def score_of(sample: Sample) -> float:
    """The points of one run."""
    return sum(part.points for part in score_parts(sample))


def score_parts(sample: Sample) -> tuple[ScorePart, ...]:
    """The points of one run by kind, without those that have none."""
    gone, budgets = _number(sample, *_GONE), _number(sample, FindingKind.BUDGET_OVERDRAWN)
    seconds = [finding.seconds or 0.0 for finding in sample.findings if finding.kind in _GONE]
    minutes = sum(min(_MOST_MINUTES, math.ceil(each / 60)) for each in seconds)
    without = f"{count_of(gone, 'workload')} without a serving pod for {format_duration(round(sum(seconds)))} in all"
    parts = [
        ScorePart(gone * _OF_WORKLOAD + minutes, without),
        ScorePart(budgets * _OF_BUDGET, f"{count_of(budgets, 'budget')} overdrawn"),
    ]
    texts = {
        FindingKind.NO_ROOM: "without room",
        FindingKind.STUCK_TERMINATING: "stuck Terminating",
        FindingKind.POD_LOST: "not replaced",
        FindingKind.VOLUME_WAIT: "waiting for a volume",
    }
    for kind, text in texts.items():
        pods = _pods(sample, kind)
        parts.append(ScorePart(pods * _POINTS[kind], f"{count_of(pods, 'pod')} {text}"))
    return tuple(part for part in parts if part.points)


def _mean_parts(samples: Sequence[Sample]) -> tuple[ScorePart, ...]:
    """Of several seeds, the parts of the worst run."""
    return score_parts(max(samples, key=score_of))


def _seconds_gone(sample: Sample) -> float:
    return sum(finding.seconds or 0.0 for finding in sample.findings if finding.kind in _GONE)


def _number(sample: Sample, *kinds: FindingKind) -> int:
    return sum(finding.kind in kinds for finding in sample.findings)


def _pods(sample: Sample, kind: FindingKind) -> int:
    return sum(finding.count for finding in sample.findings if finding.kind == kind)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
