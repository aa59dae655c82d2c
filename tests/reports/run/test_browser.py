"""The page in a real browser: drawing, search, zoom, evidence and back, keyboard, dark, phone, print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.reports.run import html
from tests.kit.browser import CHROMIUM, NO_CHROMIUM, Browser, Page

Made = tuple[RunResult, Timeline]
Open = Callable[..., Page]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)]

ROW_OF = "rows.findIndex((row) => row.label.includes(%r))"
WHOLE = "Math.abs(view.from - full.from) < 1 && Math.abs(view.to - full.to) < 1"  # the whole run is visible


@pytest.fixture
def open_page(browser: Browser, recorded: Made, tmp_path: Path) -> Iterator[Open]:
    """Open the report of the recorded run, or of another; every page must be without errors at the end."""
    opened: list[Page] = []

    def open_(made: Made | None = None, text: str = "", **window: Any) -> Page:
        file = tmp_path / f"report-{len(opened)}.html"
        file.write_text(text or html.render(*(made or recorded)), encoding="utf-8")
        opened.append(browser.page(file, **window))
        return opened[-1]

    yield open_
    for page in opened:
        errors = page.errors()
        page.close()
        assert errors == []


def lanes_of(page: Page) -> set[str]:
    """Full names of the lanes that are shown."""
    return set(page.evaluate("rows.filter((row) => row.lane !== undefined).map((row) => nameOf(row.lane))"))


def place(page: Page, label: str, time: float) -> tuple[float, float]:
    """Position in the window of a time (ms) on the row whose label has this text."""
    page.evaluate("canvas.scrollIntoView({block: 'start'})")
    found = page.evaluate(
        f"(() => {{ const i = {ROW_OF % label}, box = canvas.getBoundingClientRect();"
        f" return [box.left + x({time}), box.top + topOf(i) + ROW / 2]; }})()"
    )
    return float(found[0]), float(found[1])


def dataset(page: Page) -> dict[str, str]:
    return dict(page.evaluate("({...document.body.dataset})"))


def test_script_draws_a_lane_per_affected_pod_and_every_node(open_page: Open) -> None:
    page = open_page()
    marks = dataset(page)
    assert (marks["drawn"], marks["lanes"], marks.get("error")) == ("true", "20", None)
    assert page.evaluate("document.querySelector('tr.chosen strong').textContent").startswith("every pod")
    assert page.evaluate("document.getElementById('found').textContent") == "20 of 40 lanes (4 nodes, 36 pods)"


def test_violated_expectations_come_first_in_the_table_and_in_the_timeline(open_page: Open) -> None:
    page = open_page()
    found = page.evaluate("[...document.querySelectorAll('.verdicts tbody .badge')].map((e) => e.textContent)")
    assert [text.split()[1] for text in found] == ["violated", "inconclusive", "held", "held", "held"]
    rows = page.evaluate("rows.filter((row) => row.verdict).map((row) => row.verdict.status)")
    assert rows == ["violated", "inconclusive", "held", "held", "held"]


def test_search_leaves_the_lanes_that_match_and_announces_how_many(open_page: Open) -> None:
    page = open_page()
    page.evaluate("document.getElementById('search').focus()")
    for letter in "tier-b":
        page.press(letter)
    names = lanes_of(page)
    pods = {name for name in names if "/" in name}
    assert pods
    assert all("tier-b" in name for name in pods)
    text = page.evaluate("document.getElementById('found').textContent")
    assert text.startswith(f"{len(names)} of 40 lanes")
    assert page.evaluate("document.getElementById('found').getAttribute('aria-live')") == "polite"


@pytest.mark.parametrize(
    ("control", "value", "holds"),
    [
        ("show", "'all'", "rows.filter((row) => row.kind === 'node').length === 4"),
        ("by-node", "String(data.lanes.name.findIndex((n, i) => isNode(i)))",
         "SHOWN.every((l) => data.lanes.node[l] === 0)"),
        ("by-owner", "document.querySelector('#by-owner option:nth-child(2)').value",
         "SHOWN.every((l) => isNode(l) || ownerOf(l) === document.querySelector('#by-owner').selectedOptions[0].text)"),
        ("by-state", "'pending'", "SHOWN.every((l) => isNode(l) || hadState(l, 2))"),
        ("group", "'owner'", "rows.some((row) => row.kind === 'heading' && row.label === 'Deployment/web')"),
    ],
)  # fmt: skip
def test_filters(open_page: Open, control: str, value: str, holds: str) -> None:
    page = open_page()
    change = "dispatchEvent(new Event('change'))"
    page.evaluate(f"(() => {{ const c = document.getElementById('{control}'); c.value = {value}; c.{change}; }})()")
    shown = "rows.map((row) => row.lane).filter((lane) => lane !== undefined)"
    assert page.evaluate(f"{shown}.length > 0")
    assert page.evaluate(holds.replace("SHOWN", shown))


def test_axis_of_a_chart_fits_its_values_and_limits(open_page: Open) -> None:
    page = open_page()
    found = page.evaluate(
        "[[[0, 3], []], [[0, 0], []], [[null], []], [[0, 0.01], [0.02]], [[300], [500]], [[980, 990], [1000]]]"
        ".map(([value, limits]) => rangeOf({ value, bounds: limits.map((limit) => ['limit', limit]) }))"
    )
    assert found == [[0, 3], [0, 1], [0, 1], [0, 0.02], [0, 500], [960, 1000]]
    summary = "chartSummary({ value: [300, null, 310], unit: 'ms', bounds: [['limit', 500]] })"
    assert page.evaluate(summary) == "300 to 310 ms, limit 500"


def test_fold_opens_and_closes_by_click(open_page: Open) -> None:
    page = open_page()
    before = lanes_of(page)
    point = place(page, "pods without changes", 0)
    page.click(*point)
    assert lanes_of(page) > before
    page.click(*point)
    assert lanes_of(page) == before


def test_wheel_with_ctrl_zooms_around_the_pointer_and_without_it_does_not(open_page: Open) -> None:
    page = open_page()
    point = place(page, "ra-worker", 30_000)
    whole = page.evaluate("[view.from, view.to]")
    page.wheel(*point, 120)
    assert page.evaluate("[view.from, view.to]") == whole
    page.evaluate("board.scrollTop = 0")
    page.wheel(*point, -500, ctrl=True)
    first, last = page.evaluate("[view.from, view.to]")
    assert last - first < (whole[1] - whole[0]) / 2
    left = page.evaluate("canvas.getBoundingClientRect().left")
    assert page.evaluate(f"timeAt({point[0] - left})") == pytest.approx(30_000, abs=150)


def test_drag_buttons_and_minimap_move_and_zoom(open_page: Open) -> None:
    page = open_page()
    page.evaluate("document.getElementById('zoom-in').click()")
    first, last = page.evaluate("[view.from, view.to]")
    x, y = place(page, "ra-worker", (first + last) / 2)
    page.drag(x, y, -100)
    assert page.evaluate("view.from") > first
    assert page.evaluate("panel.hidden")  # a drag is no click
    page.evaluate("minimap.scrollIntoView()")
    box = page.evaluate("(() => { const b = minimap.getBoundingClientRect(); return [b.left, b.top]; })()")
    page.click(box[0] + 5, box[1] + 10)
    assert page.evaluate("Math.abs(view.from - full.from) < 1")
    page.evaluate("document.getElementById('zoom-all').click()")
    assert page.evaluate(WHOLE)


def test_bar_opens_its_evidence_and_back_returns(open_page: Open) -> None:
    page = open_page()
    page.click(*place(page, "web-84p4k", 20_000))
    text = page.evaluate("panel.innerText")
    assert "succeeded for" in text
    assert "demo/web-f5fbb7d79-84p4k" in text
    assert "Deployment/web" in text
    cells = page.evaluate("[...panel.querySelectorAll('.changes tr')].map((r) => [...r.cells].map((c) => c.innerText))")
    assert ["status.phase", "Running", "Succeeded"] in cells
    page.evaluate("panel.querySelector('a[href^=\"#at-entry-\"]').click()")
    page.frame()
    assert page.evaluate("panel.dataset.item").startswith("entry ")
    page.evaluate("panel.querySelector('button').click()")  # Back
    page.wait("panel.dataset.item.startsWith('span ')")
    page.evaluate("history.back()")
    page.wait("panel.hidden")


def test_diamond_step_and_mark_open_their_evidence(open_page: Open) -> None:
    page = open_page()
    page.click(*place(page, "the kubelet announces", 300))
    assert page.evaluate("panel.dataset.item").startswith("verdict ")
    assert "What decided" in page.evaluate("panel.innerText")
    page.click(*place(page, "steps", 0))
    assert "systemctl power-off" in page.evaluate("panel.innerText")
    at = page.evaluate("data.marks.at[data.marks.first[rows.find((r) => r.label === 'web-84p4k').lane]]")
    page.click(*place(page, "web-84p4k", at))
    assert "DisruptionTarget: TerminationByKubelet" in page.evaluate("panel.innerText")


def test_links_of_the_table_open_the_panel_and_the_deciding_entry_is_marked(open_page: Open) -> None:
    page = open_page()
    page.evaluate("document.querySelector('.decisive a').click()")
    page.wait("!panel.hidden")
    assert "decided here" in page.evaluate("panel.querySelector('.decided').innerText")
    seq = page.evaluate("document.querySelector('.verdicts .links a').getAttribute('href').slice(2)")
    page.evaluate("document.querySelector('.verdicts .links a').click()")
    page.wait(f"panel.innerText.includes('#{seq} ')")


def test_address_of_an_item_opens_it_and_a_wrong_one_does_not(open_page: Open) -> None:
    page = open_page()
    for wrong in ("at-span-99999999", "at-constructor-1", "at-verdict-nowhere", "at-entry-x", "at-span--1"):
        page.evaluate(f"location.hash = '{wrong}'")
        page.frame()
        assert page.evaluate("panel.hidden"), wrong
    page.evaluate("location.hash = 'at-verdict-hypothesis-0'")
    page.wait("!panel.hidden")


def test_keyboard_alone_reaches_evidence_and_returns(open_page: Open) -> None:
    page = open_page()
    for _ in range(30):
        page.press("Tab")
        if page.evaluate("document.activeElement.id") == "lanes":
            break
    assert page.evaluate("document.activeElement.id") == "lanes"
    target = page.evaluate(ROW_OF % "ra-worker")
    for _ in range(target):
        page.press("ArrowDown")
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.evaluate("spoken.textContent").startswith("ra-worker: at +")
    assert "Ready=False" in page.evaluate("spoken.textContent")
    page.press("+")
    assert page.evaluate("view.to - view.from < full.to - full.from")
    page.press("Enter")
    page.wait("!panel.hidden")
    assert page.evaluate("document.activeElement === panel")
    assert "node is shutting down" in page.evaluate("panel.innerText")
    page.press("Escape")
    page.wait("panel.hidden")
    assert page.evaluate("document.activeElement.id") == "lanes"
    page.press("0")
    assert page.evaluate(WHOLE)


def test_cursor_shows_the_state_of_every_lane_at_its_moment(open_page: Open) -> None:
    page = open_page()
    x, y = place(page, "web-84p4k", 20_000)
    page.move(x, y)
    states = page.evaluate("Object.fromEntries(rows.filter((r) => r.lane !== undefined)"
                           ".map((r) => [r.label, stateText(r, view.cursor)]))")  # fmt: skip
    assert states["ra-worker"] == "not ready"
    assert states["web-84p4k"] == "succeeded"
    assert states["db-1 #1"] == "absent"
    assert states["db-1 #2"] == "pending"
    assert "demo/web-f5fbb7d79-84p4k" in page.evaluate("tip.textContent")


def test_copy_gives_the_full_name(open_page: Open) -> None:
    page = open_page()
    copied = page.evaluate(
        f"(() => {{ view.focus = {ROW_OF % 'web-84p4k'}; canvas.focus();"
        " const clipboardData = new DataTransfer(), bubbles = true, cancelable = true;"
        " const event = new ClipboardEvent('copy', {clipboardData, bubbles, cancelable});"
        " canvas.dispatchEvent(event); return event.clipboardData.getData('text/plain'); })()"
    )
    assert copied == "demo/web-f5fbb7d79-84p4k"


def test_observations_are_listed_on_demand(open_page: Open) -> None:
    page = open_page()
    assert page.evaluate("document.querySelectorAll('#observations-list p').length") == 0
    page.evaluate("document.getElementById('observations').open = true")
    page.wait("document.querySelectorAll('#observations-list p').length === PORTION")
    page.evaluate("document.querySelector('#observations-list button').click()")
    assert page.evaluate("document.querySelectorAll('#observations-list p').length === data.observations.seq.length")


def test_dark_colours_are_used(open_page: Open) -> None:
    page = open_page(dark=True)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
    pixel = "[...pen.getImageData(canvas.width - 3, 3, 1, 1).data].slice(0, 3)"
    assert page.evaluate(pixel) == [18, 22, 29]
    page.emulate("screen", dark=False)
    page.frame()
    assert page.evaluate(pixel) == [255, 255, 255]


@pytest.mark.parametrize("width", [390, 768, 1400])
def test_page_needs_no_scrolling_sideways(open_page: Open, width: int) -> None:
    page = open_page(width=width, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate("openItem({kind: 'verdict', index: 0})")
    page.wait("!panel.hidden")
    page.evaluate("document.getElementById('observations').open = true")
    page.frame()
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_two_fingers_zoom_on_a_phone(open_page: Open) -> None:
    page = open_page(width=390, height=844)
    x, y = place(page, "ra-worker", 60_000)
    page.pinch(x, y, (20, 30, 45, 60))
    assert page.evaluate("(view.to - view.from) < (full.to - full.from) * 0.6")


def test_first_screen_answers_on_a_desktop_and_a_phone(open_page: Open) -> None:
    for width, height in ((1400, 900), (390, 844)):
        page = open_page(width=width, height=height)
        for selector in (".counts", "h1", ".decisive dl", ".measures", ".band ol", ".clean"):
            bottom = page.evaluate(f"document.querySelector('{selector}').getBoundingClientRect().bottom")
            assert 0 < bottom <= height, (selector, width)


def test_print_has_the_still_picture_and_evidence_as_footnotes(open_page: Open) -> None:
    page = open_page()
    page.emulate("print")

    def shown(selector: str) -> bool:
        return bool(page.evaluate(f"document.querySelector('{selector}').getClientRects().length > 0"))

    assert shown(".still")
    assert shown(".footnotes li")
    assert shown(".legend")
    assert not shown("#lanes")
    assert not shown("form.bar")
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8


def test_every_control_has_a_name_and_the_landmarks_are_there(open_page: Open) -> None:
    page = open_page()
    page.evaluate("openItem({kind: 'verdict', index: 0})")
    page.wait("!panel.hidden")
    found = page.tab.locator("html").aria_snapshot()
    roles = {"banner", "main", "contentinfo", "complementary", "search"}
    assert roles <= set(re.findall(r"- (\w+)", found))
    controls = re.findall(r"- (button|combobox|searchbox|link|application)\b( \")?", found)
    assert len(controls) > 10
    assert [role for role, name in controls if not name] == []
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_page_whose_data_is_damaged_shows_the_still_picture(browser: Browser, recorded: Made, tmp_path: Path) -> None:
    text = re.sub(r'(id="data">)[^<]+', r"\1AAAA", html.render(*recorded))
    file = tmp_path / "report.html"
    file.write_text(text, encoding="utf-8")
    page = browser.page(file)
    assert dataset(page)["error"]
    assert page.evaluate("document.querySelector('.still').getClientRects().length > 0")
    assert page.evaluate("document.getElementById('lanes').getClientRects().length") == 0
    page.close()


def test_hostile_text_neither_runs_nor_breaks_the_script(open_page: Open, hostile: Callable[[str], Made]) -> None:
    code = "document.body.dataset.owned=1"
    page = open_page(hostile(f"</script><script>{code}</script><img src=x onerror='{code}'>\x00'\""))
    for kind in ("verdict", "step", "span", "mark", "entry"):
        page.evaluate(f"openItem({{kind: '{kind}', index: 0}})")
        page.frame()
        assert not page.evaluate("panel.hidden"), kind
    marks = dataset(page)
    assert (marks["drawn"], marks["lanes"], marks.get("owned"), marks.get("error")) == ("true", "2", None, None)


def test_run_without_observations_is_drawn(open_page: Open, recorded: Made) -> None:
    marks = dataset(open_page((recorded[0], Timeline())))
    assert (marks["drawn"], marks["lanes"], marks.get("error")) == ("true", "0", None)


@pytest.mark.usefixtures("margin_column")
def test_the_panel_shows_a_column_that_is_new(open_page: Open) -> None:
    page = open_page()
    page.evaluate("location.hash = 'at-verdict-hypothesis-1'")
    page.wait("document.querySelector('#panel dl')")
    facts = page.evaluate("[...document.querySelectorAll('#panel dl > *')].map((e) => e.textContent)")
    assert facts[::2] == ["Expected", "Observed", "Margin"]
    assert facts[-1] == "margin of <hypothesis-1>"


def test_no_tile_breaks_a_word(open_page: Open) -> None:
    """Long texts of a tile on a window that leaves it the least room."""
    page = open_page(width=1200)
    page.evaluate(
        "document.querySelectorAll('.measures li').forEach((tile) => {"
        " tile.querySelector('strong').textContent = '1m12.3s';"
        " tile.querySelector('.value .quiet').textContent = 'limit 6m10.5s';"
        " tile.querySelector('.about-measure').textContent = '1 of 1 replacements'; })"
    )
    lines = "(e) => Math.round(e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight))"
    assert max(page.evaluate(f"[...document.querySelectorAll('.about-measure')].map({lines})")) <= 2
    wide = "(tile) => tile.scrollWidth > tile.clientWidth"
    assert not page.evaluate(f"[...document.querySelectorAll('.measures li')].some({wide})")
