"""Sentences for people about verdicts (what happened to whom, and when; at most 20 words), times and answers."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from chaos.core.assertion import Claim, ClaimAssertion, Names, format_seconds
from chaos.core.duration import format_duration, parse_bound
from chaos.core.experiment import Expectation, Experiment, Until
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import JudgeContext
from chaos.verdicts.judge.temporal import Answer, Stretch

MAX_WORDS = 20
_log = logging.getLogger(__name__)
_ENDS_WITH_NUMBER = re.compile(r"\d( s| min| h)?$")
_AT_ONCE = 0.05  # seconds
_DECIDED = (Status.HELD, Status.VIOLATED)


class Part(Enum):
    """Part of the experiment that an expectation is in: it decides the words for the time."""

    STEADY = "steady"
    METHOD = "method"
    RECOVERY = "recovery"


def with_sentences(
    context: JudgeContext, expectations: Sequence[Expectation], verdicts: Sequence[Verdict], part: Part
) -> tuple[Verdict, ...]:
    """The verdicts on the expectations, in the same order, each with its sentence."""
    targets = dict.fromkeys(context.experiment.spec.targets, ()) | dict(context.match_result.targets)
    pairs = zip(expectations, verdicts, strict=True) if verdicts else ()
    first = context.experiment.spec.method[0].name
    return tuple(
        replace(verdict, sentence=sentence(expectation, verdict, targets, part, first))
        for expectation, verdict in pairs
    )


def sentence(
    expectation: Expectation,
    verdict: Verdict,
    targets: Mapping[str, Sequence[str]],
    part: Part = Part.METHOD,
    first: str = "the first step",
) -> str:
    """The sentence for a verdict, without a full stop. It uses the name of the expectation if the assertion has no
    words.

    ``first``: the step from which times count, unless the expectation names another one.
    """
    names = Names(targets, verdict.subjects if verdict.status is Status.VIOLATED else (), expectation.name or "")
    claim, statement = _claim(expectation, names), ""
    if claim is None:
        claim, statement = _generic_claim(names), _statement(expectation)
    clause = _clause(expectation, verdict, claim, is_generic=bool(statement))
    prefix = "" if verdict.status in _DECIDED else "unknown whether "
    times = _times(expectation, verdict, part, claim.duty, first)
    comma = "," if _ENDS_WITH_NUMBER.search(clause) else ""
    candidates = [f"{prefix}{clause}{comma * time[1:2].isdigit()}{time}" for time in (*times, "")]
    if statement:
        candidates = [f"{text}: {statement}" for text in candidates]
    return shorten(next((text for text in candidates if len(text.split()) <= MAX_WORDS), candidates[-1]))


def shorten(text: str) -> str:
    """``text`` as a sentence: on one line, beginning with a capital, cut to 20 words, without a full stop."""
    words = text.split()
    cut = f"{' '.join(words[:MAX_WORDS])}…" if len(words) > MAX_WORDS else " ".join(words)
    return f"{cut[:1].upper()}{cut[1:]}".rstrip(".")


def _clause(expectation: Expectation, verdict: Verdict, claim: Claim, is_generic: bool) -> str:
    """The clause without its time."""
    is_inverted = expectation.never is not None and not is_generic and not expectation.order
    is_failure = (verdict.status is Status.VIOLATED) is not (is_inverted and verdict.status in _DECIDED)
    if not is_failure:
        return claim.holds
    is_lost = expectation.always is not None and (_since(verdict) or 0.0) >= _AT_ONCE
    return (is_lost and claim.lost) or claim.fails


def _claim(expectation: Expectation, names: Names) -> Claim | None:
    if expectation.order:
        number = f"{len(expectation.order)} expectations"
        return Claim(f"{number} came true in order", f"{number} did not come true in order")
    bound = expectation.bound
    if bound is None or not isinstance(bound.assertion, ClaimAssertion):
        return None
    try:
        return bound.assertion.claim(bound.params, names)
    except Exception:  # noqa: BLE001 - a bug in words must not end the run
        _log.exception("describing %r failed", expectation.title)
        return None


def _generic_claim(names: Names) -> Claim:
    where = f" on {names.one_affected()}" if names.one_affected() else ""
    return Claim(f"as expected{where}", f"not as expected{where}")


def _statement(expectation: Expectation) -> str:
    """The name of the expectation, or else the summary of its assertion."""
    if expectation.name:
        return expectation.name
    bound = expectation.bound
    summary = bound.assertion.summary if bound else f"assertion {expectation.assert_}"
    return f"never: {summary}" if expectation.never is not None else summary


def _times(expectation: Expectation, verdict: Verdict, part: Part, duty: str, first: str) -> Iterator[str]:
    """Words for the time, each after a space or a comma, the most complete first."""
    if part is Part.STEADY:
        yield " before the first step"
    elif part is Part.RECOVERY:
        yield f" again within {format_seconds(verdict.bound)}" if verdict.bound is not None else " again"
    elif expectation.within is not None:
        hold = _written(expectation.for_)
        word = "or not for" if verdict.status is Status.VIOLATED else "and stayed so for"
        hold_text = "" if hold is None else f", {word} {format_seconds(hold)}"
        bound = verdict.bound if verdict.bound is not None else _written(expectation.within)
        within = " in time" if bound is None else f" within {format_seconds(bound)}"
        yield f"{within}{hold_text}"
        yield within
    else:
        yield from _throughout_times(expectation, verdict, duty, first)


def _throughout_times(expectation: Expectation, verdict: Verdict, duty: str, first: str) -> Iterator[str]:
    until = expectation.never or expectation.always  # an abort condition has neither and means always
    if expectation.order:
        return
    end, is_open = "", verdict.status not in _DECIDED
    if isinstance(until, Until) and until.until:
        moment = _moment(until.until)
        end = f" before {moment}" if is_open or verdict.status is Status.VIOLATED else f" until {moment}"
    elif isinstance(until, Until):
        seconds = verdict.bound if verdict.bound is not None else _written(until.for_)
        word = "within" if is_open and expectation.never is not None else "for"
        end = "" if seconds is None else f" {word} {format_seconds(seconds)}"
    if verdict.status is not Status.VIOLATED:
        yield end or " during the run"
        return
    duty = "" if expectation.never else duty
    yield from _violation_times(verdict, end, duty, _moment(expectation.after or first))


def _violation_times(verdict: Verdict, end: str, duty: str, label: str) -> Iterator[str]:
    """When the expectation was violated, and for how long it had to hold: `` 0.4 s after cut; it had to stay ...``."""
    since = _since(verdict)
    if since is None:
        yield end
        return
    moment = f" right after {label}" if since < _AT_ONCE else f" {format_seconds(since)} after {label}"
    if end:
        yield f"{moment}; {duty}{end.replace(' before ', ' until ')}" if duty else f"{moment} (not allowed{end})"
    yield moment


def _since(verdict: Verdict) -> float | None:
    """Seconds from the start of judging to the decision; None if either is unknown."""
    return None if verdict.at is None or verdict.start is None else max(verdict.at - verdict.start, 0.0)


def _moment(reference: str) -> str:
    """``power-on``, ``the end of power-on``, or either with ``+ 90s``."""
    head, plus, offset = reference.partition(" + ")
    step = f"the end of {head[4:-1]}" if head.startswith("end(") and head.endswith(")") else head
    return f"{step}{plus}{offset}"


def _written(bound: str | None) -> float | None:
    """Seconds of a bound without facts, None for any other."""
    parsed = parse_bound(bound) if bound else None
    return None if parsed is None or parsed.names else parsed.seconds(lambda _: None)


def with_remedy(because: str, remedy: str) -> str:
    """Reason of an inconclusive verdict, with the observations that would have decided it."""
    return f"{because}; to decide this, nodefall needs {remedy}"


def remedy_of(expectation: Expectation, experiment: Experiment) -> str:
    """Describe the observations that would decide the expectation."""
    ordered = [each for each in experiment.spec.hypothesis if each.title in (expectation.order or ())]
    parts = [each.bound.assertion.needs for each in (expectation, *ordered) if each.bound]
    return "; ".join(dict.fromkeys(parts)) or "an assertion of `nodefall list`"


def format_since(t: float, anchor: float, label: str) -> str:
    """Format ``t`` relative to the anchor, like ``43.9 s after power-off``."""
    distance = t - anchor
    if math.isinf(distance):
        return "never"
    if abs(distance) < 0.05:
        return f"at {label}"
    if distance < 0:
        return f"{-distance:.1f} s before {label}"
    return f"{distance:.1f} s after {label}"


def phrase_within(answer: Answer, anchor: float, label: str, deadline: float, hold: float = 0.0) -> str:
    """Describe an answer of ``within`` in one sentence."""
    observation = answer.sample.observation
    held = f", and it stayed so for {format_duration(hold)}" if hold else ""
    if answer.status is Status.HELD:
        if answer.at <= anchor:
            return f"{observation}, already at {label}{held}"
        return f"{observation}, {format_since(answer.at, anchor, label)}{held}"
    if answer.status is not Status.VIOLATED:
        return _phrase_undecided(answer, anchor, label, f"the deadline ({format_since(deadline, anchor, label)})")
    text = f"at the deadline, {format_since(deadline, anchor, label)}: {observation}"
    if answer.longest_run is not None and hold:
        return f"{text}; it was true for only {answer.longest_run:.1f} s instead of {format_duration(hold)}"
    if answer.late_span:
        late = answer.late_span.start - deadline
        return f"{text}; it became true {late:.1f} s too late, {format_since(answer.late_span.start, anchor, label)}"
    return f"{text}; it was never observed to be true"


def phrase_throughout(answer: Answer, anchor: float, label: str, end: float) -> str:
    """Describe an answer of ``never`` or ``always`` in one sentence."""
    if answer.status is Status.VIOLATED:
        return f"{answer.sample.observation}, {format_since(answer.at, anchor, label)}"
    if answer.status is Status.HELD:
        return f"true the whole time until {format_since(end, anchor, label)}"
    return _phrase_undecided(answer, anchor, label, f"the end ({format_since(end, anchor, label)})")


def _phrase_undecided(answer: Answer, anchor: float, label: str, end: str) -> str:
    if answer.doubt is not None:
        return _phrase_readings(answer.doubt, anchor, label, end)
    if answer.status is Status.PENDING:
        lag = f" ({answer.sample.observation})" if answer.sample.is_lag else ""
        return f"the recording ends before {end}{lag}"
    return f"{answer.sample.observation}, {format_since(answer.at, anchor, label)}"


def _phrase_readings(doubt: Stretch, anchor: float, label: str, end: str) -> str:
    """Describe a stretch whose begin or end is uncertain, so that both verdicts are possible."""
    is_begin = doubt.lo < doubt.hi
    times = (doubt.lo, doubt.hi) if is_begin else (doubt.end_lo, doubt.end_hi)
    first, last = (format_since(t, anchor, label) for t in times)
    word = "since" if is_begin else "until"
    moment = f"{word} some moment between {first} and {last}"
    return f"{doubt.sample.observation}, {moment}: too uncertain to compare with {end}"
