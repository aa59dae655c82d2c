"""``report.html``: a self-contained page; scripts and styles are assets of this package, inlined."""

from __future__ import annotations

from chaos.core.result import RunResult
from chaos.core.text import printable
from chaos.core.timeline import Timeline
from chaos.core.verdict import SYMBOLS
from chaos.reports.run.markup import Html, join, tag
from chaos.reports.run.offline_page import load_assets, page_head
from chaos.reports.run.outline import SIMULATED, name_of
from chaos.reports.run.page.columns import pack
from chaos.reports.run.page.html_summary import render_summary
from chaos.reports.run.page.html_tables import render_tables
from chaos.reports.run.page.html_timeline import render_timeline
from chaos.reports.run.page.lane_names import own_namespace
from chaos.reports.run.page.own_names import without_namespace
from chaos.reports.run.page.page_data import page_data
from chaos.reports.run.page.scripts import SCRIPTS, STYLES
from chaos.reports.run.page.svg import render_svg
from chaos.reports.run.page.timeline_lanes import lanes
from chaos.reports.run.renderer import Renderer


def render(result: RunResult, timeline: Timeline) -> str:
    """Render the whole document, ending in a newline."""
    style, script = load_assets(*STYLES), load_assets(*SCRIPTS, "start.js")
    found = lanes(timeline, [node for nodes in result.targets.values() for node in nodes])
    result = without_namespace(result, own_namespace(timeline.meta, found))
    data = Html(pack(page_data(result, timeline, found)))
    head = page_head(f"{SYMBOLS[result.status]} {name_of(result)} {result.status}", style, script)
    skip = tag("a", "Skip to the timeline", href="#timeline", class_="skip")
    still = render_svg(result, timeline, found)
    main = tag("main", render_timeline(still), render_tables(result, timeline))
    end = tag("footer", tag("p", SIMULATED if result.simulated else f"nodefall, run {printable(result.run)}"))
    scripts = join((tag("script", data, type="application/octet-stream", id="data"), tag("script", script)), "\n")
    body = tag("body", join((skip, render_summary(result, timeline), main, end, scripts), "\n"))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


RENDERER = Renderer("html", "report.html", "a self-contained page with a timeline", render)
