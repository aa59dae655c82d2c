"""Top of the page: what failed, expected and observed, how long it took, and what was left behind."""

from __future__ import annotations

from chaos.core.duration import format_duration
from chaos.core.result import RunResult
from chaos.core.text import on_node
from chaos.core.timeline import Timeline
from chaos.core.verdict import SYMBOLS, Status
from chaos.reports.run.markup import SPACE, Html, join, tag, text
from chaos.reports.run.outline import format_offset, format_utc, origin, pending_undo
from chaos.reports.run.page.measures import Measure, measures, some
from chaos.reports.run.page.page_data import window
from chaos.reports.run.page.ranking import aborted_by, decisive, unproven_step
from chaos.reports.run.page.step_groups import step_groups
from chaos.reports.run.verdict_rows import leftovers

_BAR = 100.0  # width of a bar in units of its view box
_MAX_MOMENTS = 8
_STOPPED = "■"
_ROOM = 15.0  # percent of the band that its word needs


def render_summary(result: RunResult, timeline: Timeline) -> Html:
    """Render the header of the page."""
    found, left = measures(result, timeline), _left_behind(result)
    parts = (
        _status_line(result),
        tag("h1", _headline(result)),
        _decisive(result),
        left or Html(),
        _measures(found),
        _band(result, timeline, found),
        Html() if left else _nothing_left(result),
    )
    return tag("header", join(parts, "\n"), class_=str(result.status))


def _status_line(result: RunResult) -> Html:
    symbol = SYMBOLS[result.status] if result.ending == result.status else _STOPPED
    parts = [tag("span", f"{symbol} {result.tally or result.ending}", class_=f"badge counts {result.status}")]
    if result.simulated:
        parts.append(tag("span", "simulated cluster", class_="badge lab"))
    nodes = sorted({node for nodes in result.targets.values() for node in nodes})
    where = f" on {some(nodes)}" if nodes else ""
    parts.append(tag("span", f"{result.experiment}{where} · {format_utc(result.started)}", class_="quiet"))
    return tag("p", join(parts, SPACE), class_="status")


def _headline(result: RunResult) -> str:
    """The sentence for people; the badge before it has the rest of the headline."""
    row = aborted_by(result)
    if row and row.verdict.sentence:
        return row.verdict.sentence
    return result.sentence or result.headline.removeprefix(f"{result.ending}: ")


def _decisive(result: RunResult) -> Html:
    """What decided: its name, expected and observed on a line each, and when."""
    row, step = decisive(result), unproven_step(result)
    if step:
        name = text(on_node(step.step, step.node))
        return _facts("Step", name, "a proven effect", f"{step.proof_status}: {step.because}")
    if result.foreign_faults and result.status is Status.INCONCLUSIVE and not aborted_by(result):
        fault = result.foreign_faults[0]
        return _facts("Foreign fault", text(f"on {fault.node}"), "no change of a node by anyone else", fault.text)
    if row is None:
        return tag("p", result.title, class_="quiet")
    verdict = row.verdict
    observed = verdict.observed or ("" if verdict.sentence else verdict.because)
    word = "Aborted by" if aborted_by(result) else "Expectation"
    link = tag("a", verdict.name, href=f"#{row.key}")
    return _facts(word, link, verdict.expected, observed, _when(result, verdict.at))


def _facts(word: str, name: Html, expected: str, observed: str, when: str = "") -> Html:
    pairs = ((word, name), ("Expected", expected), ("Observed", observed), ("When", when))
    items = [join((tag("dt", word), tag("dd", value))) for word, value in pairs if value]
    return tag("section", tag("dl", join(items)), class_="decisive", aria_label="What decided")


def _when(result: RunResult, at: float | None) -> str:
    """The moment as seen from the first step, and as UTC; "" for an unknown one."""
    sent = [step for step in result.steps if step.begin is not None]
    if at is None or not sent:
        return "" if at is None else format_utc(at)
    first, seconds = sent[0].step, round(at - origin(result), 1)
    clock = format_utc(at).partition(" ")[2]  # the date is that of the run
    if not seconds:
        return f"at {first}, {clock}"
    return f"{format_duration(abs(seconds))} {'after' if seconds > 0 else 'before'} {first}, {clock}"


def _measures(found: list[Measure]) -> Html:
    cards = [_measure(measure) for measure in found]
    return tag("ul", join(cards), class_="measures", aria_label="Measured durations") if cards else Html()


def _measure(measure: Measure) -> Html:
    value = "not seen" if measure.seconds is None else format_duration(round(measure.seconds, 1))
    bound = "" if measure.bound is None else f"limit {format_duration(round(measure.bound, 1))}"
    parts = (
        tag("span", measure.name, class_="sub"),
        tag("span", tag("strong", value), SPACE, tag("span", bound, class_="quiet"), class_="value"),
        tag("span", measure.about, class_="about-measure"),
        _bar(measure),
    )
    return tag("li", join(parts), class_="late" if measure.is_late or measure.seconds is None else "")


def _bar(measure: Measure) -> Html:
    """The duration as a bar, its bound as a line; without a bound the text has it all."""
    if measure.bound is None or measure.seconds is None:
        return Html()
    scale = _BAR / max(measure.bound, measure.seconds) / 1.05
    track = tag("rect", x="0", y="1", width=f"{_BAR:g}", height="4", class_="bar-track")
    bar = tag("rect", x="0", y="1", width=f"{measure.seconds * scale:.1f}", height="4", class_="bar-value")
    line = tag("rect", x=f"{measure.bound * scale:.1f}", y="0", width="1", height="6", class_="bar-bound")
    return tag("svg", track, bar, line, viewBox=f"0 0 {_BAR:g} 6", preserveAspectRatio="none", aria_hidden="true")


def _band(result: RunResult, timeline: Timeline, found: list[Measure]) -> Html:
    """From the fault to its end and the undo: a band to scale, and its moments as a list."""
    start, (begin, end) = origin(result), window(result, timeline)
    if not any(step.begin is not None for step in result.steps):
        return Html()
    recovered = next((m.seconds for m in found if m.name == "Recovered after"), None)
    healed = end if recovered is None else start + recovered

    def x(t: float) -> float:
        return (min(max(t, begin), end) - begin) / (end - begin) * 100

    def rect(first: float, last: float, kind: str) -> Html:
        width = f"{x(last) - x(first):.2f}%" if last > first else "3"
        return tag("rect", x=f"{x(first):.2f}%", y="0", width=width, height="100%", class_=f"band-{kind}")

    moments = _moments(result, timeline, recovered)
    undone = [(entry.t, record) for entry, record in timeline.actions if record.phase in ("undo", "undone")]
    shapes = [rect(begin, end, "whole"), rect(start, healed, "fault")]
    if undone:
        shapes.append(rect(undone[0][0], undone[-1][0], "undo"))
    shapes += [rect(t, t, kind) for t, kind, _ in moments]
    if x(healed) - x(start) > _ROOM:
        shapes.append(tag("text", "fault", x=f"{x(start):.2f}%", y="13", dx="8"))
    drawn = tag("svg", join(shapes), aria_hidden="true")
    items = [
        tag("li", tag("span", format_offset(t, start), class_="time"), SPACE, words, class_=f"moment-{kind}")
        for t, kind, words in moments
    ]
    return tag("div", drawn, tag("ol", join(items)), class_="band")


def _moments(result: RunResult, timeline: Timeline, recovered: float | None) -> list[tuple[float, str, str]]:
    """Steps, the decision, the recovery and the undo, as (epoch seconds, kind, text), oldest first."""
    start = origin(result)
    found = []
    for group in step_groups(result, lambda t: round((t - start) * 1000)):
        where = on_node(group["name"], group["items"][0]["node"])
        words = where if group["count"] == 1 else f"{group['name']} x{group['count']}, {group['proven']} proven"
        found.append((start + group["begin"] / 1000, "step", words))
    row = decisive(result)
    if row and row.verdict.at is not None:
        word = "aborted" if aborted_by(result) else str(row.verdict.status)
        found.append((row.verdict.at, f"decided {result.status}", f"{SYMBOLS[row.verdict.status]} {word}"))
    if recovered is not None:
        found.append((start + recovered, "ready", "Ready again"))
    undos = [(entry.t, record.phase) for entry, record in timeline.actions if record.phase in ("undo", "undone")]
    for t, phase in undos[:1] + undos[1:][-1:]:
        found.append((t, "undo", "undo begins" if phase == "undo" else "undone"))
    return sorted(found, key=lambda moment: moment[0])[:_MAX_MOMENTS]


def _left_behind(result: RunResult) -> Html | None:
    lines = [tag("li", tag("strong", "Undo pending:"), SPACE, line) for line in pending_undo(result)]
    lines += [tag("li", line) for line in leftovers(result)]
    return tag("section", tag("h2", "Left behind"), tag("ul", join(lines)), class_="alarm") if lines else None


def _nothing_left(result: RunResult) -> Html:
    if not result.run:
        return tag("p", "Judged from a recording: nothing was changed.", class_="clean")
    return tag("p", tag("span", "✓", class_="sign"), SPACE, "Nothing was left behind.", class_="clean")
