"""``report.html``: a self-contained page; script and style are assets of this package, inlined."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from chaos.model.duration import format_duration
from chaos.model.result import RunResult, StepResult
from chaos.model.text import printable
from chaos.model.timeline import Timeline
from chaos.model.verdict import SYMBOLS, Verdict
from chaos.report.markup import SPACE, Html, join, script_json, table, tag, text
from chaos.report.observations import observations
from chaos.report.outline import (
    PHASES,
    SIMULATED,
    STEP_SYMBOLS,
    Section,
    assumed_facts,
    cited_seqs,
    format_offset,
    format_utc,
    name_of,
    origin,
    pending_undo,
    phases,
    run_details,
    sections,
)
from chaos.report.page_data import page_data
from chaos.report.renderer import Renderer
from chaos.report.svg import render_svg
from chaos.report.timeline_lanes import lanes

_STYLES = ("report.css",)
_SCRIPTS = ("layout.js", "draw.js", "page.js")
_MAX_ROWS = 3000
_KEYS_HINT = "Drag to move, Ctrl + wheel to zoom; with the keyboard: arrows, + and -, 0 for all."


def render(result: RunResult, timeline: Timeline) -> str:
    """Render the whole document, ending in a newline."""
    style, script = _assets(_STYLES), _assets(_SCRIPTS)
    chart = lanes(timeline, [node for nodes in result.targets.values() for node in nodes])
    data = script_json(page_data(result, timeline, chart))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{SYMBOLS[result.status]} {name_of(result)} {result.status}"),
        tag("style", style),
    )
    main = tag(
        "main",
        _left_behind(result),
        _verdicts(result),
        _chart(render_svg(result, timeline, chart)),
        _steps(result),
        _observations(result, timeline),
        _run_details(result),
    )
    end = tag("footer", tag("p", SIMULATED if result.simulated else f"nodefall, run {printable(result.run)}"))
    scripts = join((tag("script", data, type="application/json", id="data"), tag("script", script)), "\n")
    page = tag("html", head, tag("body", join((_header(result), main, end, scripts), "\n")), lang="en")
    return f"<!doctype html>\n{page}\n"


def _assets(names: tuple[str, ...]) -> Html:
    folder = files("chaos.report") / "assets"
    return Html("\n".join((folder / name).read_text(encoding="utf-8") for name in names))


def _policy(style: str, script: str) -> str:
    """Content security policy that admits only this style and this script."""

    def source(code: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"

    sources = f"default-src 'none'; style-src {source(style)}; script-src {source(script)}"
    return f"{sources}; base-uri 'none'; form-action 'none'"


def _header(result: RunResult) -> Html:
    badge = tag("span", f"{SYMBOLS[result.status]} {result.status}", class_=f"badge {result.status}")
    lab = tag("span", "simulated cluster", class_="badge lab") if result.simulated else Html()
    return tag(
        "header",
        tag(
            "p",
            badge,
            SPACE,
            lab,
            SPACE,
            tag("span", f"{name_of(result)} · {format_utc(result.started)}", class_="quiet"),
        ),
        tag("h1", result.headline.removeprefix(f"{result.status}: ")),  # the badge above has the status
        tag("p", result.title, class_="quiet"),
        class_=str(result.status),
    )


def _left_behind(result: RunResult) -> Html:
    lines = [tag("li", tag("strong", "Undo pending:"), SPACE, line) for line in pending_undo(result)]
    lines += [tag("li", line) for line in result.leftovers]
    if not lines:
        text = "Nothing was left behind." if result.run else "Judged from a recording: nothing was changed."
        return tag("p", text, class_="quiet clean")
    return tag("section", tag("h2", "Left behind"), tag("ul", join(lines)), class_="alarm")


def _verdicts(result: RunResult) -> Html:
    start = origin(result)
    parts = [
        tag("tbody", tag("tr", tag("th", section.title, colspan="4", scope="rowgroup")), _verdict_rows(section, start))
        for section in sections(result)
    ]
    head = ("Verdict", "Expectation", "Reason", "Evidence")
    cells = join(tag("th", cell, scope="col") for cell in head)
    caption = tag("caption", "Every expectation with its verdict, reason and evidence")
    whole = tag("table", caption, tag("thead", tag("tr", cells)), join(parts, "\n"), class_="verdicts")
    return tag("section", tag("h2", "Verdicts"), tag("div", whole, class_="wide"))


def _verdict_rows(section: Section, start: float) -> Html:
    return join(
        tag(
            "tr",
            tag(
                "td",
                tag("span", f"{SYMBOLS[v.status]} {v.status}", class_=f"badge {v.status}"),
                _decision_time(v, start),
            ),
            tag("td", tag("strong", v.name), tag("span", v.assertion, class_="sub")),
            tag("td", v.because, _expected_and_observed(v)),
            tag("td", _evidence_links(v.evidence), class_="links"),
            id=f"{section.key}-{index}",
            data_verdict=f"{section.key}-{index}",
        )
        for index, v in enumerate(section.verdicts)
    )


def _decision_time(verdict: Verdict, start: float) -> Html:
    """Time of the decision, and the deadline."""
    decided = f"at {format_offset(verdict.at, start)}" if verdict.at is not None else ""
    due = f"due {format_offset(verdict.deadline, start)}" if verdict.deadline is not None else ""
    return tag("span", ", ".join(part for part in (decided, due) if part), class_="sub")


def _expected_and_observed(verdict: Verdict) -> Html:
    """Expected and observed side by side, where the verdict has them."""
    pairs = (("expected", verdict.expected), ("observed", verdict.observed))
    items = [join((tag("dt", name), tag("dd", value))) for name, value in pairs if value]
    return tag("dl", join(items)) if items else Html()


def _evidence_links(evidence: tuple[int, ...]) -> Html:
    most = 12
    links = [tag("a", f"#{seq}", href=f"#e{seq}") for seq in evidence[:most]]
    more = [f"and {len(evidence) - most} more"] if len(evidence) > most else []
    return join((*links, *more), " ") if evidence else text("none")


def _chart(still: Html) -> Html:
    states = ("ready", "running", "pending", "notready", "unknown", "terminating", "succeeded", "failed")
    names = {"running": "running, not ready", "notready": "node not ready", "unknown": "node unknown"}
    legend = [tag("li", tag("i", class_=f"key k-{s}"), names.get(s, s)) for s in states]
    legend += [tag("li", tag("i", class_="key k-taint"), "tainted"), tag("li", tag("i", class_="key k-blind"), "blind")]
    legend += [tag("li", "▼ DisruptionTarget"), tag("li", "\u00d7 deleted"), tag("li", "◆ evidence")]
    buttons = [
        tag("button", label, type="button", id=name, title=title)
        for label, name, title in (("+", "in", "zoom in"), ("-", "out", "zoom out"), ("all", "reset", "show all"))
    ]
    all_pods = tag("label", Html('<input type="checkbox" id="all-pods"/> '), "also pods that did not change")
    bar = tag("div", join(buttons), all_pods, tag("span", _KEYS_HINT, class_="quiet"), class_="bar")
    label = "Timeline, a lane per node and pod; the table of observations has the same data"
    canvas = tag("canvas", tabindex="0", role="img", aria_label=label, id="lanes")
    board = tag("div", tag("div", canvas, id="sizer"), id="board")
    drawn = tag("div", bar, board, tag("div", id="tip", role="status"), tag("ul", join(legend), class_="legend"))
    return tag("section", tag("h2", "Timeline"), tag("div", drawn, class_="scripted"), tag("noscript", still))


def _steps(result: RunResult) -> Html:
    start = origin(result)
    rows = [_step_row(step, start) for step in result.steps]
    if not rows:
        return tag("section", tag("h2", "Steps"), tag("p", "No step was sent."))
    body = table(("Step", "Node", "Sent", "Effect", "Evidence"), rows, "Steps and their proofs")
    found = [tag("tr", join(tag("td", cell) for cell in row)) for row in phases(result, start)]
    head = tuple(name.capitalize() for name in PHASES)
    by_node = table(head, found, "Phases of each step by node") if found else Html()
    return tag("section", tag("h2", "Steps"), tag("div", body, class_="wide"), by_node)


def _step_row(step: StepResult, start: float) -> Html:
    took = f", took {format_duration(step.returned - step.begin)}" if step.begin and step.returned else ""
    sent = tag("code", step.command) if step.command else Html()
    effect = f"{STEP_SYMBOLS[step.proof_status]} {step.proof_status}{' (weakly)' if step.weak else ''}"
    badge = tag("span", effect, class_=f"badge {step.proof_status.replace(' ', '-')}")
    return tag(
        "tr",
        tag(
            "td",
            tag("strong", step.step),
            tag("span", f"{step.action} at {format_offset(step.begin, start)}", class_="sub"),
        ),
        tag("td", step.node),
        tag("td", sent, tag("span", f"{step.delivery}{took}", class_="sub")),
        tag("td", badge, SPACE, step.because),
        tag("td", _evidence_links(step.evidence), class_="links"),
    )


def _observations(result: RunResult, timeline: Timeline) -> Html:
    start, cited = origin(result), set(cited_seqs(result))
    found, omitted = observations(timeline, cited, _MAX_ROWS)
    rows = (
        tag(
            "tr",
            tag("td", format_offset(entry.t, start), class_="time"),
            tag("td", f"#{entry.seq}"),
            tag("td", entry.kind),
            tag("td", text),
            id=f"e{entry.seq}",
            class_=("cited " if entry.seq in cited else "") + f"kind-{'action' if entry.kind == 'action' else 'other'}",
        )
        for entry, text in found
    )
    body = table(("When", "Number", "Kind", "Observation"), rows, "Changes in the order of observation")
    rest = tag("p", f"The recording has {omitted} more changes.", class_="quiet") if omitted else Html()
    summary = tag("summary", tag("h2", f"Observations ({len(found)} rows)"))
    return tag("details", summary, tag("div", body, class_="wide observations"), rest, id="observations")


def _run_details(result: RunResult) -> Html:
    assumed = assumed_facts(result)
    lists = [
        ("Assumed", assumed or ("Nothing: every bound was read from the cluster.",)),
        ("Notes", result.notes),
    ]
    parts = [
        tag("div", tag("h2", title), tag("ul", join(tag("li", line) for line in lines)))
        for title, lines in lists
        if lines
    ]
    facts = join(join((tag("dt", name), tag("dd", value))) for name, value in run_details(result))
    return tag("section", tag("div", tag("h2", "How it was run"), tag("dl", facts)), join(parts), class_="about")


RENDERER = Renderer("html", "report.html", "a self-contained page with a timeline", render)
