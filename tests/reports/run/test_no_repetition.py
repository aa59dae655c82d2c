"""Every view begins with the same sentence, and has no sentence twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
import yaml

from chaos.core.action import ProofStatus
from chaos.core.experiment import Experiment
from chaos.core.result import RunResult, UndoResult
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status
from chaos.reports.run import html, junit, markdown
from chaos.reports.run.summary import summary
from chaos.reports.run.verdicts import rows
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import RECORDINGS, manifests, plugin_registry, shipped

Made = tuple[RunResult, Timeline]
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "held": ("01", "graceful-poweroff", {}),
    "violated": ("05", "graceful-poweroff", {"steps": {"power-off": "power-cut"}}),
    "a step is missing": ("05", "graceful-poweroff", {}),
    "a step took no effect": ("12", "partition", {}),
    "not steady": ("01", "graceful-poweroff", {"manifests": ()}),
    "requirements": ("01", "priority-shutdown", {}),
    "undecided": ("02", "lock-after-cancel", {}),
    "many": ("05", "power-cut", {}),
}


def _experiment(name: str) -> Experiment:
    other = Path(__file__).parents[2] / "verdicts" / "judge" / "experiments" / f"{name}.yaml"
    return Experiment.model_validate(yaml.safe_load(other.read_text())) if other.exists() else shipped(name)


@cache
def made(case: str) -> Made:
    number, name, options = CASES[case]
    experiment, timeline = _experiment(name), build_timeline(read_recording(next(RECORDINGS.glob(f"{number}-*.gz"))))
    given: dict[str, Any] = {"manifests": manifests(experiment)} | options
    return judge(experiment, timeline, plugin_registry(), Options(**given)), timeline


class Text(HTMLParser):
    """Text of the elements, without scripts, styles and the table of observations."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._hidden = ""
        self.feed(re.sub(r"<details.*?</details>|<noscript.*?</noscript>", "", page, flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden = tag if tag in ("script", "style", "title") else ""

    def handle_endtag(self, tag: str) -> None:
        self._hidden = ""

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.found.append(data.strip())


def _markdown_cells(made: Made) -> Iterator[str]:
    text = re.sub(r"\n## Evidence.*?\n## ", "\n## ", markdown.render(*made), flags=re.DOTALL)
    for line in re.sub(r"\\(.)", r"\1", text).splitlines():
        yield from line.strip("| *").split(" | ")


def _junit_texts(made: Made) -> Iterator[str]:
    for element in ET.fromstring(junit.render(*made)).iter():  # noqa: S314 (our own)
        lines = (element.text or "").splitlines()
        message = element.get("message", "")
        assert not message or message in lines, "readers show either the attribute or the text"
        yield from (element.get("value", ""), *lines)


VIEWS: dict[str, Callable[[Made], list[str]]] = {
    "html": lambda made: Text(html.render(*made)).found,
    "markdown": lambda made: list(_markdown_cells(made)),
    "junit": lambda made: list(_junit_texts(made)),
    "terminal": lambda made: summary(made[0]).splitlines(),
}


def reasons(result: RunResult) -> set[str]:
    """The sentences of all verdicts, steps and notes: with four words or more, as the others are no sentences."""
    verdicts = (*result.steady_state, *result.hypothesis, *result.abort, *result.recovery)
    texts = {result.sentence, *result.notes, *(text for v in verdicts for text in (v.sentence, v.because))}
    return {text for text in texts if len(text.split()) >= 4}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("view", VIEWS)
def test_no_sentence_twice(view: str, case: str) -> None:
    result, _ = made(case)
    texts = VIEWS[view](made(case))
    count = {reason: sum(text.count(reason) for text in texts) for reason in reasons(result)}
    inner = {reason for reason in count if any(reason != other and reason in other for other in count)}
    assert {reason: n for reason, n in count.items() if n > 1 and reason not in inner} == {}
    assert count[result.sentence] == 1


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("view", VIEWS)
def test_the_first_sentence_is_the_same(view: str, case: str) -> None:
    """Before any verdict there is the tally, and the sentence."""
    result, _ = made(case)
    text = "\n".join(VIEWS[view](made(case)))
    others = [v.because for v in (*result.steady_state, *result.hypothesis) if v.because in text]
    first = text.index(result.tally)
    assert first < text.index(result.sentence)
    assert all(text.index(result.sentence) < text.index(because) for because in others)
    assert result.headline == f"{result.tally}: {result.sentence}"


@pytest.mark.parametrize("view", VIEWS)
def test_the_reason_of_every_row_is_known(view: str) -> None:
    """A row without a reason refers to the one that has it."""
    result, _ = made("a step is missing")
    first = result.hypothesis[0].name
    shown = [row.because for section in rows(result).values() for row in section]
    assert sum(because.startswith("not judged: ") for because in shown) == 1
    assert shown.count(f"as for {first}") == len(result.hypothesis) + len(result.recovery) - 1
    assert f"as for {first}" in "\n".join(VIEWS[view](made("a step is missing")))


@pytest.mark.parametrize("view", VIEWS)
def test_a_pending_undo_is_reported_once(view: str) -> None:
    result, timeline = made("violated")
    undo = UndoResult("power-off", "poweroff", "rb-worker", False, "the lock of the cluster is gone")
    left = ("undo of power-off on rb-worker: the lock of the cluster is gone", "a taint")
    changed = msgspec.structs.replace(result, undo=(undo,), leftovers=left, status=Status.VIOLATED)
    text = "\n".join(VIEWS[view]((changed, timeline)))
    assert text.count("the lock of the cluster is gone") == (2 if view == "junit" else 1)  # a case, and the output
    assert "a taint" in text


@pytest.mark.parametrize("view", VIEWS)
def test_a_note_that_is_a_reason_is_shown_once(view: str) -> None:
    result, timeline = made("violated")
    fault = "foreign fault: n1 was cordoned by kubectl at +2.0 s"
    first, *others = result.hypothesis
    changed = msgspec.structs.replace(
        result,
        notes=(fault, "another note"),
        hypothesis=(replace(first, because=f"{fault}; to decide this, nodefall needs x"), *others),
    )
    text = "\n".join(VIEWS[view]((changed, timeline)))
    assert (text.count(fault), text.count("another note")) == (1, 1)


@pytest.mark.parametrize("view", VIEWS)
def test_why_a_run_proves_nothing_is_shown_once(view: str) -> None:
    """It is the reason of a step, or of a verdict on the steady state: the hypotheses refer to it."""
    no_effect, not_steady = made("a step took no effect"), made("not steady")
    step = next(step for step in no_effect[0].steps if step.proof_status is not ProofStatus.PROVEN)
    verdict = next(verdict for verdict in not_steady[0].steady_state if verdict.status is not Status.HELD)
    assert "\n".join(VIEWS[view](no_effect)).count(step.because) == 1
    assert "\n".join(VIEWS[view](not_steady)).count(verdict.because) == 1
