"""The timeline section: controls, canvases for the script, and a still picture for print and without scripts."""

from __future__ import annotations

from chaos.reports.run.markup import SPACE, Html, join, tag
from chaos.reports.run.page.page_data import STATES

_STATE_NAMES = {"running": "running, not ready", "notready": "node not ready", "unknown": "node unknown"}
_SHOW = (("affected", "affected only"), ("changed", "all that changed"), ("all", "everything"))
_GROUP = (("node", "node"), ("owner", "owner"))
_BUTTONS = (("zoom-in", "+", "Zoom in"), ("zoom-out", "-", "Zoom out"), ("zoom-all", "all", "Show the whole run"))
_KEYS = (
    "Keys: ↑ ↓ lane, ← → next change, Shift + ← → move, + - 0 zoom, Enter evidence, Esc back."
    " Mouse: drag, Ctrl + wheel; touch: drag, pinch."
)
_LABEL = "Timeline, a lane for each expectation, count, node and pod"


def render_timeline(still: Html) -> Html:
    """Render the section; ``still`` is the picture for readers without scripts and for print."""
    board = tag("div", _canvas("lanes", _LABEL), id="sizer")
    chart = tag(
        "div",
        tag("canvas", id="minimap", aria_hidden="true"),
        tag("div", board, id="board"),
        class_="chart",
    )
    panel = tag("aside", id="panel", tabindex="-1", aria_label="Evidence", hidden="hidden")
    parts = (
        _controls(),
        tag("div", chart, panel, class_="split"),
        tag("div", id="tip", aria_hidden="true"),
        tag("p", id="spoken", class_="hidden", aria_live="polite"),
        tag("p", _KEYS, id="keys", class_="sub"),
    )
    title = tag("h2", "Timeline", id="timeline-title")
    scripted = tag("div", join(parts, "\n"), class_="scripted")
    return tag("section", title, scripted, still, _legend(), id="timeline", aria_labelledby="timeline-title")


def _canvas(name: str, label: str) -> Html:
    return tag("canvas", id=name, tabindex="0", role="application", aria_label=label, aria_describedby="keys")


def _controls() -> Html:
    search = tag("label", "Search", SPACE, tag("input", type="search", id="search", placeholder="node, pod or owner"))
    states = [("", "any state"), *((s, _STATE_NAMES.get(s, s)) for s in STATES)]
    choices = (
        _select("by-node", "Node", [("", "any node")]),
        _select("by-owner", "Owner", [("", "any owner")]),
        _select("by-state", "State", states),
        _select("group", "Group by", _GROUP),
    )
    buttons = [
        tag("button", sign, type="button", id=name, title=title, aria_label=title) for name, sign, title in _BUTTONS
    ]
    found = tag("output", id="found", role="status", aria_live="polite", class_="quiet")
    zoom = tag("span", join(buttons), class_="zoom")
    more = tag("details", tag("summary", "Filter and group"), tag("div", *choices, class_="choices"), class_="more")
    return tag(
        "form",
        search,
        _select("show", "Show", _SHOW),
        zoom,
        found,
        more,
        class_="bar",
        role="search",
        aria_label="Lanes",
    )


def _select(name: str, label: str, options: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> Html:
    items = join(tag("option", text, value=value) for value, text in options)
    return tag("label", label, SPACE, tag("select", items, id=name))


def _legend() -> Html:
    items = [tag("li", tag("i", class_=f"key k-{s}"), _STATE_NAMES.get(s, s)) for s in STATES]
    items += [tag("li", tag("i", class_="key k-taint"), "tainted"), tag("li", tag("i", class_="key k-blind"), "blind")]
    items += [tag("li", "▼ DisruptionTarget"), tag("li", "\u00d7 deleted"), tag("li", "◆ decision, evidence")]
    return tag("ul", join(items), class_="legend", aria_label="Legend")
