"""The run's own namespace is left out of the texts of a page, and nothing else is."""

from __future__ import annotations

import msgspec
import pytest

from chaos.core.action import ProofStatus
from chaos.core.result import RunResult, StepResult
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.page.own_names import without_namespace


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
