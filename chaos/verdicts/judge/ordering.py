"""The time word ``order``: hypotheses come true one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from chaos.core.assertion import Undecidable
from chaos.core.experiment import Expectation
from chaos.core.recording import LAG_BOUND
from chaos.core.signal import Signal
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import JudgeContext
from chaos.verdicts.judge.effects import Reading
from chaos.verdicts.judge.temporal import Stretch, first_runs

# Signal, begin and deadline of a hypothesis, in one reading of when its step took effect.
Prepare = Callable[[Expectation, Reading], tuple[Signal, float, float]]


@dataclass(frozen=True, slots=True)
class _FirstTruth:
    """First truth of a hypothesis by its deadline: not before that of ``possible``, certainly by that of ``sure``.

    None: never. ``begin``: the moments between which judging starts.
    """

    name: str
    possible: Stretch | None
    sure: Stretch | None
    begin: tuple[float, float]
    is_past_horizon: bool  # the deadline is after the end of the timeline

    @property
    def earliest(self) -> float | None:
        return None if self.possible is None else max(self.possible.lo, self.begin[0])

    @property
    def certain(self) -> float | None:
        return None if self.sure is None else max(self.sure.hi, self.begin[1])

    @property
    def seq(self) -> int | None:
        return None if self.sure is None else self.sure.sample.seq

    @property
    def order(self) -> int:
        """The position among all changes of the cluster, or 0 if it is unknown."""
        is_known = self.sure is not None and self.sure == self.possible and self.sure.hi > self.begin[1]
        return self.sure.sample.order if is_known and self.sure else 0


def judge_order(expectation: Expectation, context: JudgeContext, horizon: float, prepare: Prepare) -> Verdict:
    """Judge the order of first truths; ties are allowed, and each must have come true. Raises Undecidable."""
    by_name = {e.title: e for e in context.experiment.spec.hypothesis}
    firsts, last = [], 0.0
    for name in expectation.order or ():
        if name not in by_name:
            raise Undecidable(f"unknown hypothesis {name!r}")
        first, deadline = _first_truth(by_name[name], prepare, horizon)
        firsts.append(first)
        last = max(last, deadline)
    status, because = _compare(firsts, context.live and horizon < last + LAG_BOUND)
    evidence = tuple(f.seq for f in firsts if f.seq is not None)
    expected = ", then ".join(f.name for f in firsts)
    start = context.start
    known = ", then ".join(
        f"{f.name} ({f.certain - start:+.1f} s)"
        for f in sorted((f for f in firsts if f.certain is not None), key=lambda f: f.certain or 0.0)
        if f.certain is not None
    )
    return Verdict(
        expectation.title, "order", status, because, expected, known or "nothing", start=start, evidence=evidence
    )


def _first_truth(expectation: Expectation, prepare: Prepare, horizon: float) -> tuple[_FirstTruth, float]:
    """The first truth, and the latest deadline."""
    signal, earliest, deadline = prepare(expectation, Reading.LONGEST)
    possible, _ = first_runs(signal, earliest, min(horizon, deadline))
    signal, latest, safe_deadline = prepare(expectation, Reading.SHORTEST)
    _, sure = first_runs(signal, latest, min(horizon, safe_deadline))
    return _FirstTruth(expectation.title, possible, sure, (earliest, latest), horizon < deadline), deadline


def _compare(firsts: list[_FirstTruth], live: bool) -> tuple[Status, str]:
    for one in firsts:
        if one.certain is None and one.earliest is None:
            if one.is_past_horizon:
                return Status.PENDING, f"the recording ends before the deadline of {one.name!r}"
            return Status.VIOLATED, f"{one.name!r} did not come true by its deadline"
    doubts = []
    for one, two in itertools.pairwise(firsts):
        status, because = _compare_two(one, two)
        if status is Status.VIOLATED:
            return status, because
        if status is not Status.HELD:
            doubts.append(because)
    doubts += [f"not observed whether {one.name!r} came true" for one in firsts if one.certain is None]
    if doubts:
        return (Status.PENDING if live else Status.INCONCLUSIVE), doubts[0]
    return Status.HELD, "they came true in this order"


def _compare_two(one: _FirstTruth, two: _FirstTruth) -> tuple[Status, str]:
    """Whether ``one`` came true first, or at the same time."""
    if one.earliest is not None and two.certain is not None and one.earliest > two.certain:
        gap = one.earliest - two.certain
        return Status.VIOLATED, f"{two.name!r} came true {gap:.{1 if gap >= 1 else 3}f} s before {one.name!r}"
    if one.certain is not None and two.earliest is not None and one.certain <= two.earliest:
        return Status.HELD, ""
    if not one.order or not two.order:
        return Status.INCONCLUSIVE, f"not observed whether {one.name!r} came true before {two.name!r}"
    if one.order > two.order:  # both are in one store: the lower resourceVersion came first
        return Status.VIOLATED, f"{two.name!r} came true before {one.name!r}, by their resourceVersions"
    return Status.HELD, ""
