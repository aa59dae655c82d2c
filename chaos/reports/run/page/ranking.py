"""Verdicts in the order of their importance: violated ones first."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.core.action import ProofStatus
from chaos.core.result import RunResult, StepResult
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.outline import sections

_ORDER = (Status.VIOLATED, Status.INCONCLUSIVE, Status.PENDING, Status.HELD)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A verdict with its part of the experiment. ``key`` is unique on a page: ``hypothesis-2``."""

    key: str
    part: str
    verdict: Verdict

    @property
    def label(self) -> str:
        """The name; with the part, if it is that of the assertion, as several may have it."""
        name = self.verdict.name
        return f"{name}, {self.part.lower().removesuffix('s')}" if name == self.verdict.assertion else name


def ranked(result: RunResult) -> list[Ranked]:
    """All verdicts: what aborted the run, then by status, worst first, and in the order of the run within a status."""
    rows = [
        Ranked(f"{section.key}-{index}", section.title, verdict)
        for section in sections(result)
        for index, verdict in enumerate(section.verdicts)
    ]
    return sorted(rows, key=lambda row: (not _is_abort(row), _ORDER.index(row.verdict.status)))


def _is_abort(row: Ranked) -> bool:
    """Whether the run was aborted because of this verdict."""
    return row.key.startswith("abort-") and row.verdict.status is Status.VIOLATED


def decisive(result: RunResult) -> Ranked | None:
    """The verdict that made the run's status; None if all held, or if something else made it."""
    worst = next(iter(ranked(result)), None)
    if worst is None or worst.verdict.status is Status.HELD:
        return None
    return worst if _is_abort(worst) or worst.verdict.status is result.status else None


def aborted_by(result: RunResult) -> Ranked | None:
    """The abort condition that ended the run, None if none did."""
    worst = next(iter(ranked(result)), None)
    return worst if worst is not None and _is_abort(worst) else None


def unproven_step(result: RunResult) -> StepResult | None:
    """The step without proof that made the run inconclusive; None if something else did."""
    row = decisive(result)
    if result.status is not Status.INCONCLUSIVE or result.foreign_faults:
        return None
    if row and row.verdict.status is Status.VIOLATED:  # it aborted the run
        return None
    return next((step for step in result.steps if step.proof_status is not ProofStatus.PROVEN), None)


def cited_first(verdict: Verdict, times: dict[int, float], limit: int) -> tuple[int, ...]:
    """At most ``limit`` entries of the evidence in their order, the one nearest to the decision always among them."""
    if len(verdict.evidence) <= limit:
        return verdict.evidence
    decided = deciding_entry(verdict, times)
    shown = set(verdict.evidence[:limit])
    if decided is not None and decided not in shown:
        shown = {*verdict.evidence[: limit - 1], decided}
    return tuple(seq for seq in verdict.evidence if seq in shown)


def deciding_entry(verdict: Verdict, times: dict[int, float]) -> int | None:
    """The last entry of the evidence up to the decision; without one, the first after it. ``times``: by entry."""
    known = [(times[seq], seq) for seq in verdict.evidence if seq in times]
    if not known or verdict.at is None:
        return None
    at = verdict.at
    before = [item for item in known if item[0] <= at]
    return (max(before) if before else min(known))[1]
