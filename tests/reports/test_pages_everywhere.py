"""Every page reads right where its styles are dropped, in a copy of its text, on paper and by a screen reader."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from chaos.reports.run.html import live_document
from tests.kit.axe import findings
from tests.kit.browser import CHROMIUM, NO_CHROMIUM, Browser, Page
from tests.kit.pages import PAGES
from tests.kit.web_server import Answer, web_server

NAMES = pytest.mark.parametrize("name", [*PAGES, "live"])
DRAWN = {"rect", "circle", "ellipse", "path", "polygon", "polyline"}
# https://www.jenkins.io/doc/book/security/configuring-content-security-policy/
JENKINS = "sandbox; default-src 'none'; img-src 'self'; style-src 'self';"
BLACK = """[...document.querySelectorAll('svg rect, svg circle')].filter((each) =>
  ['rgb(0, 0, 0)', ''].includes(getComputedStyle(each).fill)).length"""
NO_BROWSER = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: make() for name, make in PAGES.items()} | {"live": live_document("a run").html}


class Copied(HTMLParser):
    """What a program finds that knows no styles: words that run together, and shapes that it would paint black."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.glued: list[str] = []
        self.unpainted: list[str] = []
        self.inline: list[str] = []
        self._last, self._crossed, self._silent = " ", False, 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._crossed = True
        self._silent += tag in ("script", "style", "title", "option")
        given = dict(attrs)
        if tag in DRAWN and "fill" not in given:
            self.unpainted.append(f"<{tag} {given}>")
        if tag == "line" and "stroke" not in given:
            self.unpainted.append(f"<{tag} {given}>")
        self.inline += [name for name in given if name == "style" or name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        self._crossed = True
        self._silent -= tag in ("script", "style", "title", "option")
        if tag == "text":  # apart in a picture
            self._last = " "

    def handle_data(self, data: str) -> None:
        if self._silent:
            self._last = " "
            return
        if self._crossed and re.match(r"[\w#(<✓✗?■+-]", data) and re.match(r"[^\s(#]", self._last):
            self.glued.append(f"{self._last}|{data[:30]}")
        self._last, self._crossed = data[-1:], False


@NAMES
def test_words_are_apart_and_shapes_are_painted_without_styles(pages: dict[str, str], name: str) -> None:
    found = Copied(pages[name])
    assert found.glued == []
    assert found.unpainted == []
    assert found.inline == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


def served(browser: Browser, page: str, policy: str) -> tuple[Page, list[str]]:
    """The page from a server that sends this policy, without its scripts, and what the policy refused."""
    refused: list[str] = []
    with web_server(Answer(200, page.encode(), {"Content-Type": "text/html", "Content-Security-Policy": policy})) as at:
        tab = browser.tab(java_script=False)
        tab.tab.on("console", lambda message: refused.append(message.text))
        tab.tab.goto(at.url)
    return tab, refused


@pytest.mark.slow
@NO_BROWSER
@NAMES
def test_jenkins_shows_all_of_it(pages: dict[str, str], browser: Browser, name: str) -> None:
    """Its default policy drops the style and the scripts of a page: no dead control, no black shape, every sentence."""
    shown, refused = served(browser, pages[name], JENKINS)
    assert any("style-src" in text for text in refused)
    assert shown.evaluate(BLACK) == 0
    controls = (
        "[...document.querySelectorAll('button, select, input, canvas')].filter((e) => e.checkVisibility()).length"
    )
    assert shown.evaluate(controls) == (1 if name == "live" else 0)  # to stop a run, which does nothing there
    text = " ".join(shown.tab.inner_text("body").split())
    assert shown.evaluate("document.documentElement.scrollWidth") <= 1400 + 20
    for heading in re.findall(r"<h[12][^>]*>([^<]+)</h[12]>", pages[name]):
        if heading not in ("Observations", "Stop this run?"):  # for the script
            assert unescape(heading).strip() in text
    shown.close()


@pytest.mark.slow
@NO_BROWSER
@NAMES
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.nightly)])
def test_axe_finds_nothing(pages: dict[str, str], browser: Browser, tmp_path: Path, name: str, scheme: str) -> None:
    file = tmp_path / "page.html"
    file.write_text(pages[name], encoding="utf-8")
    page = browser.page(file, dark=scheme == "dark", is_ready="document.readyState === 'complete'")
    if name != "live":  # which is drawn when its server sends something: tests/reports/live
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert findings(page) == []
    page.close()


@pytest.mark.slow
@NO_BROWSER
@NAMES
def test_paper_has_what_is_folded_on_a_screen(
    pages: dict[str, str], browser: Browser, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "page.html"
    file.write_text(pages[name], encoding="utf-8")
    page = browser.page(file, is_ready="document.readyState === 'complete'")
    page.emulate("print")
    folded = """[...document.querySelectorAll('details:not(.scripted):not(.more) > :not(summary)')]
      .filter((each) => !each.checkVisibility() || !each.getBoundingClientRect().height).length"""
    assert page.evaluate(folded) == 0
    assert page.evaluate("[...document.querySelectorAll('.scripted')].filter((e) => e.checkVisibility()).length") == 0
    assert len(page.pdf()) > 5000
    page.close()


def test_the_fault_ends_with_the_undo(pages: dict[str, str]) -> None:
    """Of a cordon, after which the node stays Ready, no recovery is seen."""
    shape = r'<rect[^>]* x="([\d.]+)%"[^>]* width="([\d.]+)%"[^>]* class="band-(fault|undo)"'
    shapes = re.findall(shape, pages["cordon"])
    bands = {kind: (float(x), float(x) + float(width)) for x, width, kind in shapes}
    assert bands["fault"][1] <= bands["undo"][1] + 0.02
    assert bands["fault"][1] < 90
