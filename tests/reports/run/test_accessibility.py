"""axe-core finds nothing in the report that keeps people out: on every screen, in light and dark, with evidence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from chaos.reports.run import html
from tests.kit.axe import findings
from tests.kit.browser import CHROMIUM, NO_CHROMIUM, Browser, Page
from tests.kit.reported_runs import SCENES, load

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)]
SIZES = {"desktop": (1400, 900), "phone": (390, 844)}
DAILY = {("violated", "desktop", "light"), ("violated", "phone", "dark")}


def _cases() -> Iterator[Any]:
    for case in product(SCENES, SIZES, ("light", "dark")):
        yield pytest.param(*case, marks=() if case in DAILY else pytest.mark.nightly)


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
