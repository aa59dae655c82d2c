"""The worked examples of ``explain``: the judge's own code comes to the same result in each."""

from __future__ import annotations

import io
import json
import math
from contextlib import redirect_stdout

import pytest

from chaos.cli.app import main
from chaos.cli.time_words import TIME_WORDS, Case, worked_lines
from chaos.core.duration import Bound, parse_duration
from chaos.core.experiment import Expectation, bound, parse_moment
from chaos.core.signal import Sample, Signal
from chaos.core.timeline import Timeline
from chaos.documents.yaml_text import parse_flow
from chaos.verdicts.judge.deadlines import Extension, Start
from chaos.verdicts.judge.effects import Reading
from chaos.verdicts.judge.ordering import _compare, _first_truth
from chaos.verdicts.judge.temporal import Answer, always, never, within
from tools.time_word_page import PAGE, page

FAR = 10_000.0
VALUES = {"T": True, "F": False, "?": None}
POWER_ON = 90.0  # of the example of until
DRAINED = 20.0  # of the example of after
GRACE = 40.0  # nodeMonitorGracePeriod of the example of timing


def expectation(word: str) -> Expectation:
    return Expectation.model_validate(parse_flow(TIME_WORDS[word].example))


def cases(*words: str) -> list[tuple[str, Case]]:
    return [(word, case) for word in words for case in TIME_WORDS[word].cases]


def signal(changes: str) -> Signal:
    first, *rest = changes.split()
    return Signal(
        (
            Sample(-math.inf, VALUES[first], 1, first),
            *(Sample(float(word[1:]), VALUES[word[0]], 2, word) for word in rest),
        )
    )


def judge(given: Expectation, observed: Signal) -> Answer:
    """By the keys of the example, with the anchor at 0."""
    if given.within:
        hold = parse_duration(given.for_) if given.for_ else 0.0
        return within(observed, 0.0, parse_duration(given.within), hold, FAR)
    until = given.never or given.always
    assert until is not None
    assert until is not True
    end = parse_duration(until.for_) if until.for_ else POWER_ON
    return (never if given.never else always)(observed, 0.0, end, FAR)


def test_every_key_that_is_about_time_has_an_entry() -> None:
    """Those of an expectation, and until of never and always."""
    keys = {info.alias or name for name, info in Expectation.model_fields.items()} - {"name", "assert", "with", "known"}
    assert set(TIME_WORDS) == keys | {"until"}


@pytest.mark.parametrize(("word", "case"), cases("within", "for", "never", "always", "until"))
def test_verdicts(word: str, case: Case) -> None:
    answer = judge(expectation(word), signal(case.changes))
    assert (answer.status.value, answer.at) == (case.status, case.seconds)


@pytest.mark.parametrize(("word", "case"), cases("after"))
def test_moments(word: str, case: Case) -> None:
    moment = parse_moment(case.given.removeprefix("after: "))
    assert moment.step == "drain"
    assert moment.offset + (DRAINED if moment.is_end else 0.0) == case.seconds


@pytest.mark.parametrize(("word", "case"), cases("timing", "baseline"))
def test_deadlines(word: str, case: Case) -> None:
    given = expectation(word)
    assert given.within
    number = float(case.given.split()[-1 if word == "timing" else 2])
    slack = number if word == "timing" else 1.0
    slowest = Start(number, "web-1") if word == "baseline" else None
    extension = Extension(Timeline(), slack, given.baseline, slowest)

    def seconds(time: Bound) -> float:
        return sum(sign * (GRACE if name else value) for sign, name, value in time.terms)

    deadline = extension.deadline(0.0, bound(given.within), seconds)
    assert deadline is not None
    assert deadline.at == case.seconds


@pytest.mark.parametrize(
    ("case", "first", "second"),
    list(zip(TIME_WORDS["order"].cases, ("T45", "T45", "T45", "T45"), ("T345", "T45", "T40", ""), strict=True)),
)
def test_orders(case: Case, first: str, second: str) -> None:
    names = expectation("order").order
    assert names is not None
    signals = dict(zip(names, (signal(f"F {change}".strip()) for change in (first, second)), strict=True))

    def prepare(expectation: Expectation, _: Reading) -> tuple[Signal, float, float]:
        return signals[expectation.title], 0.0, 600.0

    firsts = [
        _first_truth(Expectation.model_validate({"name": name, "assert": "x"}), prepare, FAR)[0] for name in names
    ]
    assert _compare(firsts, live=False)[0].value == case.status


def test_explain_prints_the_cases_in_columns() -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["explain", "within"]) == 0
    lines = out.getvalue().splitlines()
    assert lines[0] == "within (time word): true at some moment up to the bound; already true counts"
    assert lines[3].split("  ")[1] == "false, true from 41 s on"
    assert (
        len({line.index(status) for line in lines[3:] for status in ("held", "violated", "incon") if status in line})
        == 1
    )


def test_explain_as_json() -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["explain", "baseline", "--json"]) == 0
    document = json.loads(out.getvalue())
    assert (document["kind"], document["worked"][0]["seconds"]) == ("time word", 36)


def test_a_moment_has_no_status() -> None:
    lines = worked_lines([{"given": "g", "status": "", "seconds": 5.0, "because": "b"}])
    assert lines == ["  g  5 s  b"]


def test_the_page_is_generated() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tools/time_word_page.py"
