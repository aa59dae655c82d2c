"""Sentences for people: the table of all, at most 20 words whatever the names are, and assertions without words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from chaos.core.assertion import Claim, ClaimAssertion, Names, format_seconds
from chaos.core.experiment import Expectation
from chaos.core.registry import PluginRegistry
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.replacements import Replacement
from chaos.verdicts.judge.sentences import MAX_WORDS, Part, sentence, shorten
from chaos.verdicts.judge.series import Order, Rate
from tests.kit.real_runs import judged_run, run_lines
from tests.kit.story import HELD, INCONCLUSIVE, RECORDINGS, VIOLATED, plugin_registry
from tools import sentence_pages
from tools.sentence_pages import CASES, Case, cases

REGISTRY = plugin_registry()
ASSERTIONS = REGISTRY.assertions
ALL_CASES = list(cases())
FREE_TEXT = {"reason", "message", "name", "component", "who", "key", "value", "query", "probe", "volume", "waiting"}
WORDS = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["one two three four five six seven eight", "ends.", "node.kubernetes.io/unreachable", "a" * 300, "x\n\ty"]
)
NAME = st.from_regex(r"\A[a-z][a-z0-9.-]{0,30}\Z")
TIMES: tuple[dict[str, Any], ...] = (
    {"within": "40s"},
    {"within": "kubelet.shutdownGracePeriod + 10s", "for": "5s"},
    {"within": "toleration(unreachable) + 1m"},
    {"never": {"for": "1m30s"}},
    {"never": {"until": "end(power-on) + 90s"}},
    {"always": {"for": "250ms"}},
    {"always": {"until": "a-step-with-a-long-name"}},
    {"always": True},
    {},
)


def test_the_page_is_up_to_date() -> None:
    assert sentence_pages.PATH.read_text(encoding="utf-8") == sentence_pages.page(), "run tools/sentence_pages.py"


@pytest.mark.parametrize("name", sorted(ASSERTIONS))
def test_every_assertion_has_words(name: str) -> None:
    assert isinstance(ASSERTIONS[name], ClaimAssertion)
    assert name in CASES


@pytest.mark.parametrize("name", sorted(ASSERTIONS))
def test_every_parameter_is_in_the_table(name: str) -> None:
    if getattr(ASSERTIONS[name], "expands_to", ""):
        return  # an alias has the parameters of pods
    keys = {info.alias or field for field, info in ASSERTIONS[name].params.model_fields.items()}
    assert {key for key in keys if not re.search(rf"\b{key}:", CASES[name])} <= {"as", "except"}


@pytest.mark.parametrize("model", [Rate, Order, Replacement])
def test_every_key_of_a_question_of_pods_is_in_the_table(model: type[Rate | Order | Replacement]) -> None:
    for field, info in model.model_fields.items():
        assert re.search(rf"\b{info.alias or field}:", CASES["pods"]), field


def check(text: str) -> None:
    assert 3 <= len(text.split()) <= MAX_WORDS, text
    assert not text.endswith("."), text
    assert text == " ".join(text.split()), text
    assert text[0] == text[0].upper(), text


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.expectation.title)
def test_held_violated_and_inconclusive_differ(case: Case) -> None:
    sentences = [case.sentence(status) for status in (HELD, VIOLATED, INCONCLUSIVE)]
    assert len(set(sentences)) == 3
    assert not [text for text in sentences if "…" in text]
    for text in sentences:
        check(text)


def _with_words(value: Any, words: Iterator[str]) -> Any:
    """The parameters, with other text where any is allowed."""
    if isinstance(value, dict):
        return {
            key: next(words) if key in FREE_TEXT and isinstance(inner, str) else _with_words(inner, words)
            for key, inner in value.items()
        }
    return [_with_words(inner, words) for inner in value] if isinstance(value, list) else value


@st.composite
def expectations(draw: st.DrawFn) -> Expectation:
    case = draw(st.sampled_from(ALL_CASES))
    fields = case.expectation.model_dump(by_alias=True, exclude_unset=True)
    if "order" in fields:
        return Expectation(order=draw(st.lists(WORDS, min_size=2, max_size=9)))
    fields = {key: fields[key] for key in ("assert", "with") if key in fields} | draw(st.sampled_from(TIMES))
    fields["name"] = draw(st.none() | WORDS)
    parameters = _with_words(fields.get("with", {}), iter(lambda: draw(WORDS), None))
    assertion = ASSERTIONS.get(str(fields["assert"]))
    try:
        if assertion is not None:
            assertion.params.model_validate(parameters)
            fields["with"] = parameters
    except ValidationError:
        pass  # text that this parameter does not allow
    expectation = Expectation.model_validate(fields)
    REGISTRY.bind_expectation(expectation)
    return expectation


VERDICTS = st.builds(
    Verdict,
    name=st.just("x"),
    assertion=st.just("x"),
    status=st.sampled_from(Status),
    because=WORDS,
    at=st.none() | st.floats(0, 1e6),
    start=st.none() | st.floats(0, 1e6),
    bound=st.none() | st.floats(0, 1e6),
    subjects=st.lists(NAME | st.just("nodefall-x/pod") | WORDS, max_size=4).map(tuple),
)
TARGETS = st.fixed_dictionaries({name: st.lists(NAME, max_size=4) for name in ("victim", "victims", "unbound")})


@given(expectation=expectations(), verdict=VERDICTS, targets=TARGETS, part=st.sampled_from(Part))
@settings(deadline=None, max_examples=150)
def test_every_sentence_is_short(
    expectation: Expectation, verdict: Verdict, targets: dict[str, list[str]], part: Part
) -> None:
    text = sentence(expectation, verdict, targets, part)
    assert 2 <= len(text.split()) <= MAX_WORDS
    assert not text.endswith(".")
    assert text == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pods  end\n in time.", "Pods end in time"),
        ("a b c d e f g h i j k l m n o p q r s t", "A b c d e f g h i j k l m n o p q r s t"),
        ("a b c d e f g h i j k l m n o p q r s t u v", "A b c d e f g h i j k l m n o p q r s t…"),
        ("", ""),
    ],
)
def test_shorten(text: str, expected: str) -> None:
    assert shorten(text) == expected


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.25, "0.2 s"), (0.9, "0.9 s"), (9.94, "9.9 s"), (9.96, "10 s"), (39.6, "40 s"), (90.0, "90 s"),
        (120.0, "2 min"), (300.2, "5 min"), (330.0, "330 s"), (3600.0, "60 min"), (7200.0, "2 h"), (0.0, "0 s"),
    ],
)  # fmt: skip
def test_times_have_two_words(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


class Silent:
    """An assertion of another distribution, without words."""

    name, summary, example, needs = "swap-off", "swap is off on a node", "", ""
    params: Any = type(ASSERTIONS["node-rebooted"]).params
    node_fields, moment_fields = ("node",), ()

    def subjects(self, params: Any, view: Any) -> Any:
        raise NotImplementedError


class Broken(Silent):
    def claim(self, params: Any, names: Names) -> Claim:
        raise KeyError(params.node)


@pytest.mark.parametrize("assertion", [Silent(), Broken()], ids=["without words", "words that fail"])
@pytest.mark.parametrize(
    ("fields", "status", "expected"),
    [
        ({"within": "5s"}, HELD, "As expected within 5 s: swap is off on a node"),
        ({"within": "5s"}, VIOLATED, "Not as expected on n1 within 5 s: swap is off on a node"),
        ({"within": "5s"}, INCONCLUSIVE, "Unknown whether as expected within 5 s: swap is off on a node"),
        ({"never": {"for": "60s"}}, HELD, "As expected for 60 s: never: swap is off on a node"),
        (
            {"name": "no swap", "always": {"for": "60s"}},
            VIOLATED,
            "Not as expected on n1, 3 s after the first step (not allowed for 60 s): no swap",
        ),
    ],
)
def test_an_assertion_without_words(
    assertion: Any, fields: dict[str, Any], status: Status, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    expectation = Expectation.model_validate({"assert": "swap-off", "with": {"node": "victim"}} | fields)
    verdict = Verdict("x", "swap-off", status, "", at=3.0, start=0.0, subjects=("n1",))
    PluginRegistry({}, {"swap-off": assertion}).bind_expectation(expectation)
    assert sentence(expectation, verdict, {"victim": ("n1",)}) == expected
    assert bool(caplog.records) is isinstance(assertion, Broken)


WORKLOAD = {"assert": "workload-available", "with": {"namespace": "workload"}, "always": {"for": "30s"}}


@pytest.mark.parametrize(
    ("fields", "at", "first", "expected"),
    [
        ({}, 0.4, "power-off", "lost availability 0.4 s after power-off; it had to stay available for 30 s"),
        ({}, 0.0, "cut", "was not available right after cut; it had to stay available for 30 s"),
        ({"after": "end(on) + 5s"}, 9.0, "off", "lost availability 9 s after the end of on + 5s"),
        ({"always": {"until": "on"}}, 2.0, "off", "lost availability 2 s after off; it had to stay available until on"),
    ],
)
def test_what_had_to_stay_so(fields: dict[str, Any], at: float, first: str, expected: str) -> None:
    expectation = Expectation.model_validate(WORKLOAD | fields)
    REGISTRY.bind_expectation(expectation)
    verdict = Verdict("x", "workload-available", VIOLATED, "", at=at, start=0.0, subjects=("deployment web",))
    assert sentence(expectation, verdict, {}, first=first).startswith(f"Deployment web {expected}")


RUNS = sorted(path.name.removesuffix(".jsonl.gz") for path in (RECORDINGS / "runs").glob("*.gz"))


@pytest.mark.parametrize("name", RUNS)
def test_no_identifier_of_a_run(name: str) -> None:
    """Namespaces of runs end in random digits, which say nothing to a reader; nor do uids."""
    result = judged_run(run_lines(name), name.rpartition("-")[0])
    verdicts = (*result.steady_state, *result.hypothesis, *result.recovery, *result.abort)
    for text in (result.sentence, *(verdict.sentence for verdict in verdicts)):
        check(text)
        assert not re.search(r"nodefall-|[0-9a-f]{8}-[0-9a-f]{4}|20\d{6}T", text)
        assert not (result.run and result.run in text)
