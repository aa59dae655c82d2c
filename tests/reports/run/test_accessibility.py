"""axe-core finds nothing in the report that keeps people out: on every screen, in light and dark, with evidence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from chaos.reports.run import html
from tests.kit.browser import CHROMIUM, NO_CHROMIUM, Browser, Page
from tests.kit.reported_runs import SCENES, load

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)]
SIZES = {"desktop": (1400, 900), "phone": (390, 844)}
DAILY = {("violated", "desktop", "light"), ("violated", "phone", "dark")}
# A contrast that axe cannot compute is none that was tested. It computes none of pictures and lone signs, for which
# there is tests/reports/run/page/test_colours.py, and none of lines that a list has scrolled half out.
_UNDECIDED = {"nonBmp", "elmPartiallyObscured", "elmPartiallyObscuring"}
_OPTIONS = {"resultTypes": ["violations", "incomplete"]}


def _cases() -> Iterator[Any]:
    for case in product(SCENES, SIZES, ("light", "dark")):
        yield pytest.param(*case, marks=() if case in DAILY else pytest.mark.nightly)


def findings(page: Page) -> list[str]:
    """Violations and undecided contrasts, with the elements that have them."""
    found = Axe().run(page.tab, options=_OPTIONS).response
    violated = [(rule, node) for rule in found["violations"] for node in rule["nodes"]]
    undecided = [
        (rule, node)
        for rule in found["incomplete"]
        for node in rule["nodes"]
        if rule["id"] == "color-contrast"
        and not node["html"].startswith("<text")
        and node["any"][0]["data"].get("messageKey") not in _UNDECIDED
    ]
    return [
        f"{rule['impact']}: {rule['id']}: {node['target']}: {node['failureSummary']}"
        for rule, node in [*violated, *undecided]
    ]


def opened(browser: Browser, folder: Path, name: str, size: str, scheme: str) -> Page:
    file = folder / "report.html"
    file.write_text(html.render(*load(name)), encoding="utf-8")
    width, height = SIZES[size]
    return browser.page(file, width=width, height=height, dark=scheme == "dark")


@pytest.mark.parametrize(("name", "size", "scheme"), list(_cases()))
def test_axe_finds_nothing(browser: Browser, tmp_path: Path, name: str, size: str, scheme: str) -> None:
    page = opened(browser, tmp_path, name, size, scheme)
    closed = findings(page)
    page.evaluate("openItem({kind: 'verdict', index: 0})")
    page.wait("!panel.hidden")
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.wait("document.querySelectorAll('#observations-list p').length > 0")
    open_ = findings(page)
    page.close()
    assert (closed, open_) == ([], [])


def test_axe_notices_a_pale_text_and_a_control_without_a_name(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, "held", "desktop", "light")
    page.evaluate("document.querySelector('h1').style.color = '#ddd'")
    page.evaluate("document.getElementById('search').parentElement.replaceWith(document.getElementById('search'))")
    page.evaluate("document.getElementById('search').placeholder = ''")
    rules = {finding.split(": ")[1] for finding in findings(page)}
    page.close()
    assert rules == {"color-contrast", "label"}
