"""Five questions that the first screen of a report answers: what, where, when, expected and observed, anything left?"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from chaos.reports.run import html
from tests.kit.browser import CHROMIUM, NO_CHROMIUM, Browser, Page, readable_lines
from tests.kit.reported_runs import load

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)]
SIZES = {"desktop": (1400, 900), "phone": (390, 844)}
CLEAN = r"✓ Nothing was left behind\."
RUN = r"{} on worker-1 · \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
# Lines of the first screen, as patterns that match a whole one.
ANSWERS = {
    "held": {
        "what": r"The cluster behaved as expected after power-off on worker-1",
        "where": rf"✓ 5 of 5 held simulated cluster {RUN.format('graceful-poweroff')}",
        "when": r"\+0s power-off on worker-1",
        "expected": r"A planned power-off terminates every pod in time, and its work moves to other nodes",
        "observed": r"Last pod ended after [\d.]+s.*",
        "left behind": CLEAN,
    },
    "violated": {
        "what": r"Not every pod on worker-1 was terminated by the kubelet within 40 s",
        "where": rf"✗ 1 of 5 violated simulated cluster {RUN.format('graceful-poweroff')}",
        "when": r"40s after power-off, \d\d:\d\d:\d\d UTC",
        "expected": r"every pod is terminated by the kubelet within 40s of power-off",
        "observed": r"6 of 6, for example .*db-0: Succeeded, no DisruptionTarget, deleted",
        "left behind": CLEAN,
    },
    "inconclusive": {
        "what": r"Unknown whether pods on node worker-1 ended in order of priority within 40 s",
        "where": rf"\? 1 of 4 inconclusive simulated cluster {RUN.format('critical-pods-last')}",
        "when": r"at power-off, \d\d:\d\d:\d\d UTC",
        "expected": r"pods end group by group, in the order of priority within 40s of power-off",
        "observed": r"worker-1: the end of db-0 was not observed",
        "left behind": CLEAN,
    },
    "aborted": {
        "what": r"More than 1 node was NotReady [\d.]+ s after power-off",
        "where": rf"■ aborted simulated cluster {RUN.format('graceful-poweroff')}",
        "when": r"[\d.]+s after power-off, \d\d:\d\d:\d\d UTC",
        "expected": r"always, from power-off to the end of the run: at most 1 node is NotReady",
        "observed": r"\d of 4 nodes NotReady, for example worker-1: Ready is False \(KubeletNotReady\)",
        "left behind": CLEAN,
    },
}  # fmt: skip


@pytest.fixture
def open_run(browser: Browser, tmp_path: Path) -> Callable[..., Page]:
    def open_(name: str, size: str, **changes: tuple[str, ...]) -> Page:
        result, timeline = load(name)
        file = tmp_path / "report.html"
        file.write_text(html.render(msgspec.structs.replace(result, **changes), timeline), encoding="utf-8")
        width, height = SIZES[size]
        return browser.page(file, width=width, height=height)

    return open_


def missing(answers: dict[str, str], lines: list[str]) -> list[str]:
    return [task for task, pattern in answers.items() if not any(re.fullmatch(pattern, line) for line in lines)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ANSWERS)
def test_first_screen_answers_the_five_questions(open_run: Callable[..., Page], name: str, size: str) -> None:
    page = open_run(name, size)
    lines = readable_lines(page)
    page.close()
    assert missing(ANSWERS[name], lines) == [], lines


def test_what_was_left_behind_is_on_the_first_screen(open_run: Callable[..., Page]) -> None:
    page = open_run("violated", "phone", leftovers=("worker-1: the firewall rules of nodefall-1f93",))
    lines = readable_lines(page)
    page.close()
    assert "worker-1: the firewall rules of nodefall-1f93" in lines
    assert missing({"what": ANSWERS["violated"]["what"], "clean": CLEAN}, lines) == ["clean"]


HARMS = {
    "h1": (
        "fontSize: '11px'",
        "visibility: 'hidden'",
        "height: '9px', overflow: 'hidden'",
        "marginLeft: '1200px', whiteSpace: 'nowrap'",
        "marginTop: '860px'",
    ),
    "#tip": ("visibility: 'visible', padding: '400px', pointerEvents: 'auto'",),
}


def test_a_headline_that_cannot_be_read_is_noticed(open_run: Callable[..., Page]) -> None:
    page, headline = open_run("violated", "desktop"), {"what": ANSWERS["violated"]["what"]}
    for selector, harms in HARMS.items():
        for harm in harms:
            assert missing(headline, readable_lines(page)) == []
            page.evaluate(f"void Object.assign(document.querySelector('{selector}').style, {{{harm}}})")
            assert missing(headline, readable_lines(page)) == ["what"], harm
            page.evaluate(f"document.querySelector('{selector}').removeAttribute('style')")
    page.close()
