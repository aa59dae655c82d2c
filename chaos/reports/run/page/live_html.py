"""The document of a live page: the timeline of a report without data, which the server sends while the run goes on."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.reports.run.markup import SPACE, Html, join, table, tag
from chaos.reports.run.offline_page import load_assets, page_head, policy
from chaos.reports.run.page.html_tables import observations_section
from chaos.reports.run.page.html_timeline import render_timeline
from chaos.reports.run.page.scripts import SCRIPTS, STYLES

_QUESTION = (
    "nodefall sends no further step, undoes those that it has done, and writes the report."
    " Expectations that are not decided yet become inconclusive."
)


@dataclass(frozen=True, slots=True)
class LiveDocument:
    """A document, and the content security policy that it is to be served with."""

    html: str
    policy: str


def live_document(title: str) -> LiveDocument:
    """The document of a run with this title."""
    style = load_assets(*STYLES, "live.css")
    script = load_assets(*SCRIPTS, "live_data.js", "live_keep.js", "live.js")
    main = tag("main", _waiting(), render_timeline(Html()), _expectations(), observations_section())
    skip = tag("a", "Skip to the timeline", href="#timeline", class_="skip")
    body = tag("body", join((skip, _header(title), main, _dialog(), tag("script", script)), "\n"))
    head = page_head(title, style, script, connects=True)
    rules = f"{policy(style, script, connects=True)}; frame-ancestors 'none'"
    return LiveDocument(f"<!doctype html>\n{tag('html', head, body, lang='en')}\n", rules)


def _header(title: str) -> Html:
    words = (
        tag("span", id="connection", role="status", class_="quiet"),
        tag("span", id="experiment", class_="quiet"),
    )
    button = tag("button", "Stop and undo", type="button", id="stop", disabled="disabled")
    counts = tag("strong", id="counts", role="status", aria_live="polite")
    phase = tag("p", tag("strong", id="phase"), SPACE, counts, class_="status")
    lines = tag("div", tag("p", *words, class_="status"), tag("h1", title, id="title"), phase)
    return tag("header", tag("div", lines, button, class_="live"), tag("p", id="note", class_="quiet"))


def _waiting() -> Html:
    words = "Nothing has been observed yet. The timeline appears as soon as the observers have started."
    return tag("p", words, id="waiting", class_="quiet")


def _expectations() -> Html:
    shown = table(("Verdict", "Expectation", "Why"), (), "Expectations", class_="verdicts")
    return tag("section", tag("h2", "Expectations"), tag("div", shown, class_="wide"), id="expectations")


def _dialog() -> Html:
    buttons = tag(
        "p",
        tag("button", "Stop and undo", type="button", id="stop-yes"),
        SPACE,
        tag("button", "Cancel", type="button", id="stop-no", autofocus="autofocus"),
    )
    title = tag("h2", "Stop this run?", id="stop-title")
    return tag("dialog", title, tag("p", _QUESTION), buttons, id="stop-dialog", aria_labelledby="stop-title")
