"""The time word ``order``: hypotheses come true one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from chaos.judge.context import JudgeContext
from chaos.judge.temporal import first_truth
from chaos.model.assertion import Undecidable
from chaos.model.experiment import Expectation
from chaos.model.signal import Signal
from chaos.model.verdict import Status, Verdict

# Signal, anchor and deadline of a hypothesis.
Prepare = Callable[[Expectation], tuple[Signal, float, float]]


@dataclass(frozen=True, slots=True)
class _FirstTruth:
    """First truth of a hypothesis: not before ``earliest``, certainly by ``certain`` (None: never)."""

    name: str
    earliest: float | None
    certain: float | None
    seq: int | None
    is_past_horizon: bool  # the deadline is after the end of the timeline


def judge_order(expectation: Expectation, context: JudgeContext, horizon: float, prepare: Prepare) -> Verdict:
    """Judge the order of first truths; ties are allowed, and each must have come true. Raises Undecidable."""
    by_name = {e.title: e for e in context.experiment.spec.hypothesis}
    firsts = []
    for name in expectation.order or ():
        if name not in by_name:
            raise Undecidable(f"unknown hypothesis {name!r}")
        firsts.append(_first_truth(name, *prepare(by_name[name]), horizon))
    status, because = _compare(firsts, context.live)
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


def _first_truth(name: str, signal: Signal, anchor: float, deadline: float, horizon: float) -> _FirstTruth:
    earliest, certain = first_truth(signal, anchor, horizon)
    seq = signal.at(certain).seq if certain is not None else None
    return _FirstTruth(name, earliest, certain, seq, horizon < deadline)


def _compare(firsts: list[_FirstTruth], live: bool) -> tuple[Status, str]:
    for one in firsts:
        if one.certain is None and one.earliest is None:
            if one.is_past_horizon:
                return Status.PENDING, f"the recording ends before the deadline of {one.name!r}"
            return Status.VIOLATED, f"{one.name!r} never came true"
    doubt = ""
    for one, two in itertools.pairwise(firsts):
        if one.earliest is not None and two.certain is not None and one.earliest > two.certain:
            gap = one.earliest - two.certain
            return Status.VIOLATED, f"{two.name!r} came true {gap:.{1 if gap >= 1 else 3}f} s before {one.name!r}"
        if one.certain is None or two.earliest is None or one.certain > two.earliest:
            doubt = doubt or f"not observed whether {one.name!r} came true before {two.name!r}"
    for one in firsts:
        if one.certain is None:
            doubt = doubt or f"not observed whether {one.name!r} came true"
    if doubt:
        return (Status.PENDING if live else Status.INCONCLUSIVE), doubt
    return Status.HELD, "they came true in this order"
