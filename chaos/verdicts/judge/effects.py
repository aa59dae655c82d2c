"""When a step took effect: a request to a slow API server does so at some moment between its sending and its answer.

Durations count from that moment. An expectation is judged twice, with the shortest and with the longest time that fits
the moments, and decided only if both agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Any

from chaos.core.action import ProofStatus, StepRun
from chaos.core.assertion import NotYetDecidable, Undecidable
from chaos.core.command import Delivery
from chaos.core.evidence import is_number
from chaos.core.experiment import Expectation, Until, parse_moment
from chaos.core.timeline import Entry, Timeline, Version
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import JudgeContext
from chaos.verdicts.judge.proof import proof_result
from chaos.verdicts.judge.step_matching import StepMatch

_DECIDED = (Status.HELD, Status.VIOLATED)
_RECEIPT_SECONDS = 0.1  # by which a watch is later than the answer to the request that it shows


class Reading(Enum):
    """Which of the possible times is judged: their intersection or their union."""

    SHORTEST = "shortest"
    LONGEST = "longest"


@dataclass(frozen=True, slots=True)
class Effect:
    """A step took effect at a moment in [``earliest``, ``latest``]: the moment of the version ``order``, unless
    ``order`` is 0.
    """

    earliest: float
    latest: float
    order: int = 0

    @property
    def is_exact(self) -> bool:
        return self.earliest == self.latest

    def moved(self, offset: float) -> Effect:
        """The effect, or with an offset a time after it."""
        return replace(self, earliest=self.earliest + offset, latest=self.latest + offset, order=0) if offset else self


def effect_of(context: JudgeContext, reference: str) -> Effect:
    """The effect of a step, or its return with ``end(step)``; ``+ offset`` is allowed. Raises NotYetDecidable."""
    exact = context.moment(reference)
    moment = parse_moment(reference)
    step = context.match_result.by_name.get(moment.step) if moment.step else context.match_result.steps[0]
    if step is None or (moment.step and moment.is_end):
        return Effect(exact, exact)
    effects = [_effect_of_run(context, step, run) for run in step.runs]
    latest = min(effect.latest for effect in effects)
    if math.isinf(latest):
        raise NotYetDecidable(f"the API server has not answered step {step.step.name!r}", "its response or its effect")
    first = min(effects, key=lambda effect: effect.earliest)
    is_first = all(first.latest <= other.earliest for other in effects if other is not first)
    return Effect(first.earliest, latest, first.order if is_first else 0).moved(moment.offset)


def effect_of_all(context: JudgeContext, step: StepMatch, pause: float) -> Effect:
    """The effect of a step on all its nodes, and on all pods, once each; infinite until it has begun.

    Pods that follow one another with less than ``pause`` seconds between them count as one: many take their time.
    """
    if step.begin is None:
        return Effect(math.inf, math.inf)
    effects = [_effect_of_run(context, step, run) for run in step.runs]
    sent = sorted(sent for run in step.runs for sent, _ in _requests(run.phases.get("pods"), run.begin))
    late = [after for before, after in pairwise(sent) if after - before > pause]
    latest = max([effect.latest for effect in effects] + late)
    return Effect(min(effect.earliest for effect in effects), latest)


def longest_pause(context: JudgeContext, step: StepMatch) -> float:
    """Seconds that may have passed between the effects of a step on one pod or node and on the next."""
    if step.begin is None:
        return 0.0
    pods = [request for run in step.runs for request in _requests(run.phases.get("pods"), run.begin)]
    nodes = [_effect_of_run(context, step, run) for run in step.runs]
    each = pods or [(effect.earliest, effect.latest) for effect in nodes if math.isfinite(effect.latest)]
    return max((after[1] - before[0] for before, after in pairwise(sorted(each))), default=0.0)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The time from which an expectation is judged, in one reading.

    ``begin``: that of the step, at which sets are formed; ``since``: its effect. What follows is judged from ``start``
    on, and durations count from ``origin``. ``pin``: see :class:`Pin`.
    """

    begin: float
    since: Effect
    start: float
    origin: float
    pin: Pin | None = None


@dataclass(frozen=True, slots=True)
class Pin:
    """The version ``order`` is taken to have happened exactly ``at``: it is the moment that an expectation names."""

    order: int
    at: float


def exact_anchor(t: float) -> Anchor:
    """The same moment for everything."""
    return Anchor(t, Effect(t, t), t, t)


def anchor_after(context: JudgeContext, reference: str, reading: Reading | None) -> Anchor:
    """The anchor of what follows a moment; without a reading, of what counts from its start. Raises NotYetDecidable."""
    begin = context.moment(reference)
    if reading is None:
        return exact_anchor(begin)
    since = effect_of(context, reference)
    start, origin = since.latest, since.earliest
    if reading is Reading.LONGEST:
        start, origin = origin, start
    return Anchor(begin, since, start, origin, _pin(since, start))


def end_before(context: JudgeContext, reference: str, reading: Reading | None) -> tuple[float, Pin | None]:
    """Until when what precedes a step is judged. Raises NotYetDecidable."""
    anchor = anchor_after(context, reference, reading)
    return anchor.origin, _pin(anchor.since, anchor.origin)


def _pin(effect: Effect, at: float) -> Pin | None:
    return Pin(effect.order, at) if effect.order and not effect.is_exact else None


def over_effects(
    expectation: Expectation, context: JudgeContext, judge: Callable[[Reading], Verdict], *, from_begin: bool = False
) -> Verdict:
    """The verdict that the readings agree on. ``from_begin``: a step counts from its start, as for an abort."""
    longest = judge(Reading.LONGEST)
    uncertain = [] if from_begin or expectation.order else list(_uncertain_steps(expectation, context))
    if not uncertain:
        return longest
    shortest = judge(Reading.SHORTEST)
    if shortest.status is longest.status:
        return longest
    open_one = next(verdict for verdict in (shortest, longest) if verdict.status not in _DECIDED or verdict is longest)
    because = f"{', '.join(uncertain)}, and the verdict depends on when: {open_one.because}"
    is_pending = Status.PENDING in (shortest.status, longest.status)
    return replace(longest, status=Status.PENDING if is_pending else Status.INCONCLUSIVE, because=because)


def _uncertain_steps(expectation: Expectation, context: JudgeContext) -> Iterator[str]:
    """The steps with uncertain effects between which an expectation is judged."""
    first = context.experiment.spec.method[0].name
    until = [time.until for time in (expectation.never, expectation.always) if isinstance(time, Until) and time.until]
    for reference in (expectation.after or first, *until):
        try:
            effect = effect_of(context, reference)
        except Undecidable:
            continue
        if not effect.is_exact:
            begin = context.moment(reference)  # with the offset, as the effect
            times = f"{effect.earliest - begin:.1f} to {effect.latest - begin:.1f} s"
            yield f"{parse_moment(reference).step or first} took effect {times} after it was sent"


def _effect_of_run(context: JudgeContext, step: StepMatch, run: StepRun) -> Effect:
    """The effect on one node. A command of the host, or of its power, counts from when it was fired."""
    action = context.registry.actions.get(run.action) or context.registry.actions.get(step.step.action)
    if action is None:
        return Effect(run.begin, run.begin)
    if action.on_host and not action.through_api:
        return Effect(_fired(run), _fired(run))
    earliest, latest = _between_requests(run)
    for version in _evidence(context, step, run):
        since = min(version.earliest, version.t)
        # Else it shows a later request, as of the next step. Without a proof, it may be received just after the answer.
        lag = 0.0 if version.earliest < version.t else _RECEIPT_SECONDS
        if version.t > run.begin and since <= latest + lag:
            lo = max(earliest, since)
            return Effect(lo, max(lo, min(latest, version.t, version.latest)), version.order)
    return Effect(earliest, latest)


def _between_requests(run: StepRun) -> tuple[float, float]:
    """When the first request was sent and answered; of a step on pods, that about the first pod."""
    earliest = _fired(run)
    if run.returned is None or (run.outcome and run.outcome.delivery is Delivery.LOST):
        return earliest, math.inf
    sent, answered = min(_requests(run.phases.get("pods"), earliest), default=(earliest, run.returned))
    return max(earliest, sent), min(run.returned, answered)


def _fired(run: StepRun) -> float:
    fired: Any = run.phases.get("fired")
    return max(run.begin, float(fired)) if is_number(fired) else run.begin


def _requests(pods: object, begin: float) -> Iterator[tuple[float, float]]:
    """When the first request for each pod was sent (``begin`` if that is not recorded) and when it was answered."""
    for pod in pods if isinstance(pods, list) else ():
        if isinstance(pod, dict):
            recorded = pod.get("refusals")
            refusals = [r for r in recorded if isinstance(r, dict)] if isinstance(recorded, list) else []
            sent: Any = pod.get("sent", refusals[0].get("sent", begin) if refusals else begin)
            answered: Any = pod.get("answered", next((r.get("t") for r in refusals if r.get("status")), None))
            if is_number(sent) and is_number(answered):
                yield float(sent), float(answered)


def _evidence(context: JudgeContext, step: StepMatch, run: StepRun) -> list[Version[Any]]:
    """The versions that prove the step, the first first."""
    result = proof_result(step, run, context.timeline, context.registry)
    if result.status is not ProofStatus.PROVEN:
        return []
    entries = context.timeline.entries
    found = (_version(context.timeline, entries[seq]) for seq in result.evidence if seq < len(entries))
    return sorted((version for version in found if version is not None), key=lambda version: version.seq)


def _version(timeline: Timeline, entry: Entry) -> Version[Any] | None:
    """The version that an entry is; None if it is another observation."""
    metadata = getattr(entry.object, "metadata", None)
    if metadata is None or entry.kind == "events":  # of which there is no history
        return None
    keys: dict[str, object] = {"nodes": metadata.name, "pods": metadata.uid, "leases": metadata.name}
    key = keys.get(entry.kind, (metadata.namespace, metadata.name))
    histories = getattr(timeline, entry.kind, {})
    history = histories.get(key) or timeline.workloads.get((entry.kind, metadata.namespace, metadata.name))
    return next((version for version in history or () if version.seq == entry.seq), None)
