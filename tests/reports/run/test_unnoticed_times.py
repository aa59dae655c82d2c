"""A report says for how long a machine that was off went unnoticed: recording 05, a power cut of a real cluster."""

from __future__ import annotations

import json

import msgspec
import pytest

from chaos.core.result import RunResult, Unnoticed
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.timeline import Timeline
from chaos.reports.run import html, json_, markdown
from chaos.reports.run.outline import origin, unnoticed_text
from chaos.reports.run.page.page_data import unpack
from chaos.reports.run.summary import summary
from chaos.verdicts.judge.judge import judge
from tests.kit.story import RECORDINGS, plugin_registry, shipped

SENTENCE = "unnoticed for 43.7s: rb-worker and 11 pods on it were reported Ready, but the machine was off"


@pytest.fixture(scope="module")
def cut() -> tuple[RunResult, Timeline]:
    timeline = build_timeline(read_recording(RECORDINGS / "05-power-cut.jsonl.gz"))
    return judge(shipped("power-cut"), timeline, plugin_registry()), timeline


def test_markdown_and_terminal_have_the_sentence(cut: tuple[RunResult, Timeline]) -> None:
    assert f"## Unnoticed\n\n- {SENTENCE}\n" in markdown.render(*cut)
    assert f"\n{SENTENCE}\n" in summary(cut[0])


def test_the_result_has_it_with_its_evidence(cut: tuple[RunResult, Timeline]) -> None:
    text = json_.render(*cut)
    (each,) = json.loads(text)["unnoticed"]
    assert (each["node"], each["is_over"], each["was_ready"], each["pods"]) == ("rb-worker", True, True, 11)
    assert {str(seq) for seq in each["evidence"]} <= set(json.loads(text)["resolved"])
    assert msgspec.json.decode(text, type=RunResult).unnoticed == cut[0].unnoticed


def test_the_page_has_a_card_and_the_stretch(cut: tuple[RunResult, Timeline]) -> None:
    page = html.render(*cut)
    card = page.partition('<span class="sub">Unnoticed for</span>')[2].partition("</li>")[0]
    assert "<strong>43.7s</strong>" in card
    assert '<span class="about-measure">rb-worker and 11 pods</span>' in card
    assert page.count('class="unnoticed"') == 1, "the picture without a script"
    first, *others = unpack(page.split('id="data">')[1].split("</script>")[0])["blinds"]
    start = round((cut[0].unnoticed[0].since - origin(cut[0])) * 1000)
    assert first == {"kind": "unnoticed", "node": "rb-worker", "start": start, "end": 44011, "text": SENTENCE}
    assert "unnoticed" not in {other["kind"] for other in others}


@pytest.mark.parametrize(
    ("was_ready", "pods", "is_over", "text"),
    [
        (True, 1, True, "unnoticed for 45s: n1 and 1 pod on it were reported Ready, but the machine was off"),
        (True, 0, True, "unnoticed for 45s: n1 was reported Ready, but the machine was off"),
        (False, 1, True, "unnoticed for 45s: 1 pod on n1 was reported Ready, but the machine was off"),
        (
            False,
            2,
            False,
            "unnoticed for 45s, until the end of the recording: 2 pods on n1 were reported Ready, but ...",
        ),
    ],
)
def test_what_was_reported_ready(was_ready: bool, pods: int, is_over: bool, text: str) -> None:
    assert unnoticed_text(Unnoticed("n1", 10, 55, is_over, was_ready, pods)) == text.replace(
        "...", "the machine was off"
    )
