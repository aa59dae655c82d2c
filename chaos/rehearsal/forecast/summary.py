"""Shares and times over many runs: of each expectation, and of each finding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from chaos.core.duration import format_duration
from chaos.rehearsal.forecast.finding import TITLES, Finding, FindingKind
from chaos.rehearsal.forecast.sample import Sample
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
