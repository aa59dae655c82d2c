"""Short names of pods, and sentences without the run's own namespace."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.action import ProofStatus
from chaos.core.result import RunResult, StepResult
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.page.lanes import Lane, Span, own_namespace, short_names, without_namespace


def pod(name: str, *, begin: float = 0.0, template: str = "", changed: bool = False) -> Lane:
    namespace = name.rpartition("/")[0]
    spans = (Span(begin, begin + 1, "ready", "", 0),)
    return Lane("pod", f"{name}-{begin}", name, "n1", changed, spans, (), (), namespace, "", template)


def node(name: str) -> Lane:
    return Lane("node", name, name, name, False, ())


@pytest.mark.parametrize(
    ("lanes", "short"),
    [
        ([node("worker-2")], ["worker-2"]),
        ([pod("demo/web-6749b54fc9-x8z2k", template="6749b54fc9")], ["web-x8z2k"]),
        ([pod("demo/web-6749b54fc9-x8z2k")], ["web-6749b54fc9-x8z2k"]),
        ([pod("kube-system/agent-abcde")], ["kube-system/agent-abcde"]),
        # Two templates whose pods would have one short name keep their full names.
        (
            [pod("demo/web-aaa-x", template="aaa"), pod("demo/web-bbb-x", template="bbb"), pod("demo/web-x")],
            ["demo/web-aaa-x", "demo/web-bbb-x", "demo/web-x"],
        ),
        # Pods of one name are numbered in the order in which they appeared, whatever the order of the lanes.
        ([pod("demo/db-0", begin=9), pod("demo/db-0", begin=1), pod("demo/db-1")], ["db-0 #2", "db-0 #1", "db-1"]),
        ([pod("demo/web-1", template="1")], ["web-1"]),
        ([], []),
    ],
)
def test_short_names(lanes: list[Lane], short: list[str]) -> None:
    assert short_names(lanes, "demo") == short


def test_without_a_namespace_to_leave_out_names_are_full() -> None:
    assert short_names([pod("demo/a")], "") == ["demo/a"]


@pytest.mark.parametrize(
    ("meta", "lanes", "namespace"),
    [
        ({"workload": "run-1"}, [], "run-1"),
        ({"workload": 7}, [pod("demo/a", changed=True)], "demo"),
        ({}, [pod("a/x", changed=True), pod("b/y", changed=True), pod("b/z", changed=True)], "b"),
        ({}, [pod("a/x")], ""),
        ({}, [], ""),
    ],
)
def test_own_namespace(meta: dict[str, object], lanes: list[Lane], namespace: str) -> None:
    assert own_namespace(meta, lanes) == namespace


NAMES = st.from_regex(r"(a|demo)/(web|db)(-(aa|b))?-[xy0]", fullmatch=True)


@given(st.lists(st.tuples(NAMES, st.sampled_from(["", "aa", "b"])), max_size=12))
def test_no_two_pods_share_a_short_name(found: list[tuple[str, str]]) -> None:
    lanes = [pod(name, begin=float(i), template=template) for i, (name, template) in enumerate(found)]
    short = short_names(lanes, "demo")
    assert len(set(short)) == len(lanes)


def result(text: str) -> RunResult:
    verdict = Verdict("shop/a", "pods", Status.VIOLATED, text, text, text, sentence=text)
    step = StepResult("off", "poweroff", "n1", 100, 101, "answered", "shop/cmd", ProofStatus.PROVEN, text)
    return RunResult(
        1, "r", "e", "shop/title", Status.VIOLATED, 1, text, False, "", "", 90, 200, {"victim": ("n1",)}, (step,),
        (verdict,), (verdict,), (verdict,), (verdict,), sentence=text,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("shop/db-0: Succeeded", "db-0: Succeeded"),
        ("shop/db-0, shop/db-1 (shop/db-2)", "db-0, db-1 (db-2)"),
        ("workshop/db-0", "workshop/db-0"),
        ("my-shop/db-0", "my-shop/db-0"),
        ("/var/shop/db-0", "/var/shop/db-0"),
        ("the namespace shop", "the namespace shop"),
    ],
)
def test_texts(before: str, after: str) -> None:
    found = without_namespace(result(before), "shop")
    texts = [found.headline, found.sentence, found.steps[0].because]
    for verdict in (*found.steady_state, *found.hypothesis, *found.abort, *found.recovery):
        texts += [verdict.because, verdict.expected, verdict.observed, verdict.sentence]
    assert set(texts) == {after}
    assert (found.title, found.steps[0].command, found.hypothesis[0].name) == ("shop/title", "shop/cmd", "shop/a")


def test_without_a_namespace_nothing_changes() -> None:
    made = result("/etc shop/a")
    assert without_namespace(made, "") == made
    assert msgspec.json.encode(without_namespace(made, "other")) == msgspec.json.encode(made)
