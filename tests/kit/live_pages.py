"""A live page in a real browser."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Error

from tests.kit.browser import Browser, Page
from tests.kit.processes import WALL

NORMAL = """(() => {
  const text = (i) => data.strings[i], o = data.observations, c = data.changes;
  const bars = (table, lane, ...columns) => {
    const found = [];
    for (let i = table.first[lane]; i < table.first[lane + 1]; i++) {
      found.push(columns.map((name) => name === "text" ? text(table[name][i]) : table[name][i]));
    }
    return found;
  };
  const lanes = data.lanes.kind.map((kind, i) => [
    kind, nameOf(i), shortOf(i), ownerOf(i), data.lanes.node[i], data.lanes.flags[i],
    bars(data.spans, i, "start", "end", "state", "text", "seq"),
    bars(data.taints, i, "start", "end", "text", "seq"),
    bars(data.marks, i, "at", "kind", "text", "seq"),
  ]);
  const rows = o.seq.map((seq, i) => {
    const changes = [], part = (k) => [c.path, c.before, c.after].map((column) => text(column[k]));
    for (let k = c.first[i]; k < c.first[i + 1]; k++) changes.push(part(k));
    return [seq, o.at[i], text(o.kind[i]), o.lane[i], text(o.text[i]), o.isFirst[i], changes];
  });
  const { origin, window, namespace, states, omitted, steps, undo, verdicts, blinds } = data;
  const charts = data.charts.map(({ range, extremes, ...chart }) => chart);
  const same = { origin, window, namespace, states, omitted, steps, undo, verdicts, blinds };
  return JSON.stringify({ ...same, lanes, rows, charts });
})()"""
_PAUSE = 50.0  # ms between two looks
DRAWN = "document.body && (document.body.dataset.drawn || document.body.dataset.error)"


def open_live(browser: Browser, folder: Path, url: str, ready: str = DRAWN, **window: Any) -> Page:
    """Follow a link to the page, and wait for what ``ready`` says."""
    link = folder / "link.html"
    link.write_text(f'<!doctype html><title>link</title><a id="link" href="{url}">live page</a>', encoding="utf-8")
    page = browser.page(link, is_ready="document.getElementById('link')", **window)
    page.evaluate("document.getElementById('link').click()")
    until(page, ready)
    return page


def until(page: Page, expression: str) -> Any:
    """The value of an expression as soon as it is true, also on a page that is loaded again meanwhile.

    Playwright's own wait evaluates a string in the page, which its policy forbids.
    """
    deadline, problem = time.monotonic() + WALL, None
    while time.monotonic() < deadline:
        try:
            if value := page.evaluate(expression):
                return value
        except Error as error:
            problem = error  # the page is being loaded
        page.tab.wait_for_timeout(_PAUSE)
    raise AssertionError(f"never came true: {expression}") from problem


def data_shown(page: Page) -> dict[str, Any]:
    """The data of the page, in the form of :func:`tests.kit.live_client.report_shown`."""
    return dict(json.loads(page.evaluate(NORMAL)))


def problems(page: Page, url: str) -> list[str]:
    """Errors of the page, and requests to other servers than its own."""
    base = url.partition("?")[0]
    return [text for text in page.errors() if not text.startswith(f"request to {base}")]
