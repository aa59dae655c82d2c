"""The live page in a real browser: it grows with the run, keeps what somebody looks at, and becomes the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.timeline import Entry, Timeline
from chaos.reports.live.access import Address
from chaos.reports.live.feed import LiveFeed
from chaos.reports.live.server import LiveServer
from chaos.reports.run import html
from chaos.reports.run.page.lanes import lanes
from chaos.reports.run.page.page_data import page_data
from chaos.reports.run.verdicts import Row
from chaos.reports.tables import Column
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.axe import findings
from tests.kit.browser import CHROMIUM, Browser, Page
from tests.kit.live_client import report_shown
from tests.kit.live_pages import data_shown, open_live, problems, until
from tests.kit.story import RECORDINGS, manifests, plugin_registry, shipped

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed to open the page in"),
]
EXPERIMENT = "graceful-poweroff"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@dataclass
class Story:
    """Recording 01, fed to a live page piece by piece."""

    feed: LiveFeed
    server: LiveServer
    entries: list[Entry]
    timeline: Timeline
    stops: list[str]

    def advance(self, share: float) -> None:
        """Up to this share of the recording, with a judgement of it."""
        for entry in self.entries[len(self.timeline.entries) : int(len(self.entries) * share)]:
            self.timeline.add(entry)
            self.feed.entry(entry)
        experiment = shipped(EXPERIMENT)
        options = Options(namespace="demo", manifests=manifests(experiment))
        self.result = judge(experiment, self.timeline, plugin_registry(), options, live=True)
        self.feed.judged(self.result)

    def expected(self) -> dict[str, Any]:
        targets = [node for nodes in self.result.targets.values() for node in nodes]
        return report_shown(page_data(self.result, self.timeline, lanes(self.timeline, targets)))


@pytest.fixture
def story() -> Iterator[Story]:
    feed, stops = LiveFeed(EXPERIMENT, "lab"), list[str]()
    entries = build_timeline(read_recording(RECORDINGS / "01-graceful-poweroff.jsonl.gz")).entries[:]
    with LiveServer(Address("127.0.0.1", 0), feed, "A planned power-off") as server:
        made = Story(feed, server, entries, Timeline(), stops)
        feed.begin({"victim": ("ra-worker",)}, lambda: stops.append("stop"))
        yield made


def seen(page: Page, story: Story) -> dict[str, Any]:
    """The data once the page has all entries so far, and the last judgement."""
    data: Any = story.expected()
    verdicts = json.dumps(json.dumps(data["verdicts"], separators=(",", ":"), ensure_ascii=False))
    is_shown = f"JSON.stringify(data.verdicts) === {verdicts} && data.observations.seq.length === {len(data['rows'])}"
    until(page, f"data && data.window[1] === {data['window'][1]} && {is_shown}")
    return data_shown(page)


def test_the_page_grows_into_the_report(browser: Browser, story: Story, tmp_path: Path) -> None:
    url = story.server.url
    page = open_live(browser, tmp_path, url, "document.body && document.body.dataset.connection === 'live'")
    assert page.evaluate("getComputedStyle(control('waiting')).visibility") == "visible"
    assert page.evaluate("location.search + location.hash") == "", "the token is out of the address"
    for share in (0.3, 0.5, 0.8, 1.0):
        story.advance(share)
        assert seen(page, story) == story.expected()
        assert page.evaluate("document.querySelectorAll('#expectations tbody tr').length") == len(
            story.expected()["verdicts"]
        )
    assert page.evaluate("document.body.dataset.error === undefined")
    assert problems(page, url) == []
    story.server.finish(html.render(story.result, story.timeline))
    until(page, "document.body && document.body.dataset.ready && document.querySelector('.decisive, .clean')")
    assert data_shown(page) == story.expected()
    assert problems(page, url) == []


def test_the_view_stays_when_lanes_are_added(browser: Browser, story: Story, tmp_path: Path) -> None:
    story.advance(0.5)
    page = open_live(browser, tmp_path, story.server.url)
    page.evaluate("zoom(0.3, 1000), view.focus = rows.findIndex((row) => row.kind === 'node'), refresh()")
    page.evaluate("control('by-node').value = '0', control('by-node').dispatchEvent(new Event('change'))")
    page.evaluate("toggleFold(rows.find((row) => row.kind === 'fold').key)")
    row = "rows[view.focus] && rows[view.focus].label"
    viewed = f"[view.from, view.to, nameOf(Number(view.node)), {row}, [...view.open].length]"
    before = page.evaluate(viewed)
    page.evaluate("(() => { const i = data.spans.first[3]; location.hash = `at-span-${i}`; })()")
    until(page, "!panel.hidden")
    item = page.evaluate("[panel.querySelector('h3').textContent.split(' for ')[0], nameOf(view.lane), location.hash]")
    story.advance(1.0)
    seen(page, story)
    assert page.evaluate(viewed) == before
    assert page.evaluate("nameOf(view.lane)") == item[1]
    assert page.evaluate("nameOf(laneOfItem(addressed()))") == item[1], "the address names the same bar"
    assert problems(page, story.server.url) == []


@pytest.mark.parametrize("is_dark", [False, True])
def test_axe_finds_nothing(browser: Browser, story: Story, tmp_path: Path, is_dark: bool) -> None:
    """In a run of which something is decided."""
    story.advance(0.5)
    page = open_live(browser, tmp_path, story.server.url, dark=is_dark)
    until(page, "document.querySelectorAll('#expectations tbody tr').length")
    assert findings(page) == []
    page.close()


def test_a_new_column_is_shown(browser: Browser, margin_column: Column[Row], story: Story, tmp_path: Path) -> None:
    story.advance(0.5)
    page = open_live(browser, tmp_path, story.server.url)
    until(page, "document.querySelectorAll('#expectations tbody tr').length")
    cells = page.evaluate(
        "[...document.querySelectorAll('#expectations tr')].map((row) => row.lastElementChild.textContent)"
    )
    heading, *found = cells
    assert heading == margin_column.title.capitalize()
    assert found == [f"margin of <{key}>" for key in page.evaluate("data.verdicts.map((verdict) => verdict.id)")] != []
    assert problems(page, story.server.url) == []


def test_stop_asks_first(browser: Browser, story: Story, tmp_path: Path) -> None:
    story.advance(0.3)
    page = open_live(browser, tmp_path, story.server.url)
    until(page, "!control('stop').disabled")
    page.evaluate("control('stop').click()")
    assert page.evaluate("control('stop-dialog').open && document.activeElement.id") == "stop-no"
    page.evaluate("control('stop-no').click()")
    assert (page.evaluate("control('stop-dialog').open"), story.stops) == (False, [])
    page.evaluate("window.reached = window.fetch, window.fetch = () => Promise.reject(new TypeError('no network')), 0")
    page.evaluate("control('stop').click(), control('stop-yes').click()")
    until(page, "control('note').textContent === 'Not stopped: no connection' && !control('stop').disabled")
    assert (page.evaluate("document.body.dataset.error || ''"), story.stops) == ("", [])
    page.evaluate("window.fetch = window.reached, 0")
    page.evaluate("control('stop').click(), control('stop-yes').click()")
    until(page, "control('stop').textContent === 'Stopping…'")
    assert story.stops == ["stop"]
    assert problems(page, story.server.url) == []


def test_without_the_token_nothing_is_shown(browser: Browser, story: Story, tmp_path: Path) -> None:
    story.advance(0.3)
    address = story.server.url.rstrip("/").rpartition("/")[0] + "/"
    page = open_live(browser, tmp_path, address, "document.body && document.body.textContent.includes('token')")
    assert page.evaluate("document.querySelectorAll('script, canvas').length") == 0


def test_a_run_that_ends_without_a_report_says_why(browser: Browser, story: Story, tmp_path: Path) -> None:
    story.advance(0.3)
    page = open_live(browser, tmp_path, story.server.url)
    story.server.finish("", "The run has ended without a report: the disk is full")
    words = until(page, "control('connection').textContent.includes('ended') && control('connection').textContent")
    assert words == "The run has ended without a report: the disk is full"
    assert page.evaluate("control('stop').disabled")
