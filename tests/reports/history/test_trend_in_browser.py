"""The page of a trend in a real browser: its style passes its policy, and it fits a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.reports.history.trend import trend
from chaos.reports.history.trend_page import trend_page
from tests.kit.browser import CHROMIUM, NO_CHROMIUM, Browser
from tests.kit.stored_runs import DAY, NOW, result_of, stored, within

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)]
LOADED = "location.protocol === 'file:' && document.readyState === 'complete'"


def test_a_phone_shows_it_without_scrolling_sideways(tmp_path: Path) -> None:
    """Without the style the chart would be as wide as the page; with it, it scrolls, as tables do."""
    runs = stored(tmp_path, *(result_of(within(s), started=NOW + s * DAY) for s in range(1, 60)))
    found = trend("e", runs)
    assert found
    file = tmp_path / "trend.html"
    file.write_text(trend_page(found), encoding="utf-8")
    with Browser() as browser:
        page = browser.page(file, width=390, height=800, is_ready=LOADED)
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        assert page.evaluate("Math.round(document.querySelector('svg').getBoundingClientRect().width)") == 760
        assert page.evaluate("document.querySelectorAll('circle').length") == 59
        assert page.errors() == []
