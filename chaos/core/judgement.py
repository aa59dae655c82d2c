"""What a live run knows at one tick, for views of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from msgspec import structs

from chaos.core.action import ProofStatus
from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdicts of one tick, in the order of the experiment.

    ``expectations`` are those on the steady state until the first step, from then on those of the hypothesis. What may
    still be taken back is pending. ``timeline`` grows with the run: read it before the call that brings it returns.
    ``ends``: when maxDuration is over, in seconds since the epoch.
    """

    expectations: tuple[Verdict, ...]
    recovery: tuple[Verdict, ...]
    timeline: Timeline
    ends: float


def provisional(result: RunResult) -> RunResult:
    """A live result, of which what may still be taken back is pending.

    While a proof is pending, inconclusive is not final. A recovery that holds may be lost again before the end.
    """
    unproven = any(step.proof_status is ProofStatus.UNPROVEN and step.begin is not None for step in result.steps)
    open_statuses = {Status.INCONCLUSIVE} if unproven else set()
    hypothesis = pending_if(result.hypothesis, open_statuses)
    recovery = pending_if(result.recovery, open_statuses | {Status.HELD})
    return structs.replace(result, hypothesis=hypothesis, recovery=recovery)


def pending_if(verdicts: Iterable[Verdict], statuses: Collection[Status]) -> tuple[Verdict, ...]:
    """The verdicts, of which those with one of ``statuses`` are pending: they are not final yet."""
    return tuple(replace(v, status=Status.PENDING) if v.status in statuses else v for v in verdicts)
