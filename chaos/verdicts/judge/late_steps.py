"""Steps that took too long, or between which another time passed than in the experiment.

A slow API server delays the journal of each step, and the effect of a request: what was to be mended before a
toleration is over is mended after it, and two evictions at once are one after the other. What is violated then may be
due to that; what holds nevertheless stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from chaos.core.experiment import Moment, parse_moment
from chaos.core.recording import LAG_BOUND
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import JudgeContext
from chaos.verdicts.judge.effects import Effect, effect_of_all, longest_pause
from chaos.verdicts.judge.sentences import with_remedy
from chaos.verdicts.judge.step_matching import StepMatch

_UNTIMED = 10.0  # seconds that a step without a time may take to be proven safe and armed over a slow connection
PUNCTUAL = 2.0  # seconds; on real clusters that were not overloaded, steps were at most 1.3 s late
_REMEDY = "a run whose steps start on time, for example with a faster API server"


@dataclass(frozen=True, slots=True)
class _Shift:
    """A step was perhaps not as the experiment has it, as ``text`` says; after ``since`` that may matter."""

    since: float
    text: str


def excuse_late_steps(context: JudgeContext, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts. Violations after a step that was not in time become inconclusive.

    While a run is live it is pending for some time, as an answer may still show that the step was in time.
    """
    found = tuple(verdicts)
    if all(verdict.status is not Status.VIOLATED for verdict in found):
        return found
    shifts = list(_shifts(context))
    return tuple(_excuse(context, verdict, shifts) for verdict in found)


def _excuse(context: JudgeContext, verdict: Verdict, shifts: Iterable[_Shift]) -> Verdict:
    decided = verdict.deadline if verdict.at is None else verdict.at
    shift = next((shift for shift in shifts if decided is None or shift.since < decided), None)
    if shift is None or verdict.status is not Status.VIOLATED:
        return verdict
    if context.live and context.timeline.end < max(shift.since, decided or 0.0) + LAG_BOUND:
        return replace(verdict, status=Status.PENDING)
    because = with_remedy(f"{shift.text}: {verdict.because}", _REMEDY)
    return replace(verdict, status=Status.INCONCLUSIVE, because=because)


def _shifts(context: JudgeContext) -> Iterator[_Shift]:
    """The steps that may not have been in time, or not at once on all pods and nodes."""
    steps = context.match_result.steps
    for match in steps:
        pause = longest_pause(context, match)
        if pause > PUNCTUAL:
            text = f"step {match.step.name} may have taken {pause:.1f} s from one pod or node to the next"
            yield _Shift(effect_of_all(context, match, PUNCTUAL).earliest + PUNCTUAL, text)
    for before, match in pairwise(steps):
        due, effect = _due(context, match, before), effect_of_all(context, match, PUNCTUAL)
        if due is None:
            continue
        usual = PUNCTUAL if match.step.after else _UNTIMED
        late = min(effect.latest, context.timeline.end) - due.earliest
        early = min(due.latest, context.timeline.end) - effect.earliest
        if early > PUNCTUAL:
            yield _Shift(effect.earliest, f"step {match.step.name} may have started {early:.1f} s too early")
        if late > usual:
            yield _Shift(due.earliest + usual, f"step {match.step.name} may have started {late:.1f} s too late")


def _due(context: JudgeContext, match: StepMatch, before: StepMatch) -> Effect | None:
    """When the step should have taken effect, by default when the previous step returned. None if that is unknown."""
    after = match.step.after
    moment = parse_moment(after) if after else Moment(step="", is_end=True, offset=0.0)
    reference = context.match_result.by_name.get(moment.step, before)
    if reference.begin is None or (moment.is_end and reference.returned is None):
        return None
    at = reference.returned if moment.is_end else None
    effect = effect_of_all(context, reference, PUNCTUAL) if at is None else Effect(at, at)
    return Effect(effect.earliest + moment.offset, effect.latest + moment.offset)
