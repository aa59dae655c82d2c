"""``report.html`` of a day: a self-contained page without scripts."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.reports.day.calendar_svg import render_calendar
from chaos.reports.day.lessons import Lesson, lessons
from chaos.reports.day.moments import moments
from chaos.reports.day.texts import NOTHING_LEARNED, SIMULATED, details, title, window_lines
from chaos.reports.day.timeline_svg import render_timeline
from chaos.reports.day.view import SYMBOLS, DayView, RunView
from chaos.reports.run.markup import SPACE, Html, join, table, tag
from chaos.reports.run.offline_page import load_assets, page_head


def render(view: DayView) -> str:
    """Render the whole document, ending in a newline."""
    style = Html(load_assets("palette.css", "report.css") + load_assets("day.css", package="chaos.reports.day"))
    head = page_head(f"{SYMBOLS[view.status]} {title(view)} {view.status}", style)
    main = tag("main", _matrix(view), _lessons(view), _calendar(view), _moments(view), _details(view))
    notes = [tag("p", SIMULATED.format(", ".join(view.simulated)))] if view.simulated else []
    footer = tag("footer", join(notes), tag("p", f"nodefall, {title(view)}"))
    page = tag("html", head, tag("body", join((_header(view), main, footer), "\n")), lang="en")
    return f"<!doctype html>\n{page}\n"


def _badge(word: str, text: str = "") -> Html:
    symbol = SYMBOLS.get(word, "")
    return tag("span", f"{symbol} {text or word}".strip(), class_=f"badge {word.replace(' ', '-')}")


def _header(view: DayView) -> Html:
    lab = tag("span", "simulated", class_="badge") if view.simulated else Html()
    line = tag("p", _badge(view.status), SPACE, lab, SPACE, tag("span", title(view), class_="quiet"))
    owner = tag("p", f"{view.title}, of {view.owner}", class_="quiet")
    return tag("header", line, tag("h1", view.headline), owner, class_=view.status)


def _section(name: str, *parts: str) -> Html:
    key = name.lower().replace(" ", "-")
    return tag("section", tag("h2", name, id=key), *parts, aria_labelledby=key)


def _wide(*parts: str) -> Html:
    """Scrolls sideways by itself on narrow screens, also with the keyboard."""
    return tag("div", *parts, class_="wide", tabindex="0")


def _matrix(view: DayView) -> Html:
    rows = [
        tag(
            "tr",
            tag("th", view.label_of_row(row), scope="row"),
            join(_cell(view.at(row, cluster)) for cluster in view.clusters),
        )
        for row in view.rows
    ]
    return _section("Verdicts", _wide(table(("Entry", *view.clusters), rows, "Verdict of each entry by cluster")))


def _cell(run: RunView | None) -> Html:
    if run is None:
        return tag("td", tag("span", "not on this cluster", class_="quiet"))
    link = tag("a", "report", href=run.link, aria_label=f"report of {run.run.key}") if run.link else Html()
    facts = join([fact for fact in (run.took, link) if fact], ", ")
    reason = run.run.reason if run.word != "held" else ""
    return tag("td", _badge(run.word), *(tag("span", note, class_="sub") for note in (facts, reason) if note))


def _lessons(view: DayView) -> Html:
    found = lessons(view)
    body = join(map(_lesson, found)) if found else tag("p", NOTHING_LEARNED, class_="quiet")
    return _section("What was learned", tag("ol", body, class_="lessons") if found else body)


def _lesson(lesson: Lesson) -> Html:
    what = tag("a", lesson.what, href=lesson.link) if lesson.link else tag("span", lesson.what)
    pairs = (("expected", lesson.expected), ("observed", lesson.observed))
    facts = [join((tag("dt", name), tag("dd", value))) for name, value in pairs if value]
    return tag(
        "li",
        tag("p", _badge(lesson.kind), SPACE, tag("strong", lesson.where), SPACE, what),
        tag("p", lesson.why) if lesson.why else Html(),
        tag("dl", join(facts)) if facts else Html(),
    )


def _calendar(view: DayView) -> Html:
    keys = [tag("li", tag("i", class_=f"key {kind}"), SPACE, kind) for kind in ("open", "closed")]
    legend = tag("ul", join(keys), tag("li", "each mark is a run"), class_="legend")
    lines = [tag("p", line, class_="quiet") for line in window_lines(view)]
    return _section("Calendar", join(lines), _wide(render_calendar(view)), legend)


def _moments(view: DayView) -> Html:
    many = len(view.clusters) > 1
    rows: Iterable[Html] = (
        tag(
            "tr",
            tag("td", view.when(moment.at), class_="time"),
            tag("td", moment.cluster) if many else Html(),
            tag("td", moment.kind),
            tag(
                "td",
                join((_badge(moment.verdict), SPACE)) if moment.verdict else Html(),
                tag("a", moment.text, href=moment.link) if moment.link else moment.text,
            ),
            class_=f"m-{moment.kind.replace(' ', '-')}",
        )
        for moment in moments(view)
    )
    head = ("When", "Cluster", "What", "") if many else ("When", "What", "")
    keys = (("wait", "waits"), ("run-key", "runs"), ("halted", "halts"), ("approved", "approvals"))
    legend = tag("ul", join(tag("li", tag("i", class_=f"key {k}"), SPACE, name) for k, name in keys), class_="legend")
    whole = table(head, rows, "Everything that happened, in order")
    return _section("Timeline of the day", _wide(render_timeline(view)), legend, _wide(whole))


def _details(view: DayView) -> Html:
    facts = [join((tag("dt", name), tag("dd", value))) for name, value in details(view)]
    return _section("How it was run", tag("dl", join(facts), class_="facts"))
