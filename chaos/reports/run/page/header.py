"""Top of the page: what failed, expected and observed, how long it took, and what was left behind."""

from __future__ import annotations

from typing import Any

from chaos.core.duration import format_duration
from chaos.core.result import RunResult
from chaos.core.text import on_node
from chaos.core.timeline import Timeline
from chaos.core.verdict import SYMBOLS, Status
from chaos.reports.markup import Html, join, render_template, tag
from chaos.reports.run.outline import format_offset, format_utc, origin, pending_undo
from chaos.reports.run.page.measures import Measure, measures, some
from chaos.reports.run.page.page_data import window
from chaos.reports.run.steps import step_groups
from chaos.reports.run.verdicts import aborted_by, decisive, leftovers, unproven_step
from chaos.reports.tables import Rich

_BAR = 100.0  # width of a bar in units of its view box
_MAX_MOMENTS = 8
_STOPPED = "■"
_ROOM = 15.0  # percent of the band that its word needs
_Moment = tuple[float, str, str]  # epoch seconds, kind, text


def render_header(result: RunResult, timeline: Timeline) -> Html:
    """Render the header of the page."""
    found = measures(result, timeline)
    recovered = next((m.seconds for m in found if m.name == "Recovered after"), None)
    moments = _moments(result, timeline, recovered)
    symbol = SYMBOLS[result.status] if result.ending == result.status else _STOPPED
    nodes = sorted({node for nodes in result.targets.values() for node in nodes})
    where = f" on {some(nodes)}" if nodes else ""
    return render_template(
        "header.html",
        result=result,
        tally=f"{symbol} {result.tally or result.ending}",
        what=f"{result.experiment}{where} · {format_utc(result.started)}",
        headline=_headline(result),
        decisive=_decisive(result),
        pending=pending_undo(result),
        leftovers=leftovers(result),
        measures=[_measure(measure) for measure in found],
        band=_band(result, timeline, recovered, moments),
        moments=[(format_offset(t, origin(result)), kind, words) for t, kind, words in moments],
    )


def _headline(result: RunResult) -> str:
    """The sentence for people; the badge before it has the rest of the headline."""
    row = aborted_by(result)
    if row and row.verdict.sentence:
        return row.verdict.sentence
    return result.sentence or result.headline.removeprefix(f"{result.ending}: ")


def _decisive(result: RunResult) -> list[tuple[str, str]]:
    """What decided: its name, expected and observed, and when; empty if all held, or if something else did."""
    row, step = decisive(result), unproven_step(result)
    if step:
        return _facts("Step", on_node(step.step, step.node), "a proven effect", f"{step.proof_status}: {step.because}")
    if result.foreign_faults and result.status is Status.INCONCLUSIVE and not aborted_by(result):
        fault = result.foreign_faults[0]
        return _facts("Foreign fault", f"on {fault.node}", "no one else changed a node", fault.text)
    if row is None:
        return []
    verdict = row.verdict
    observed = verdict.observed or ("" if verdict.sentence else verdict.because)
    word = "Aborted by" if aborted_by(result) else "Expectation"
    link = Rich(verdict.name, href=f"#{row.key}")
    return _facts(word, link, verdict.expected, observed, _when(result, verdict.at))


def _facts(word: str, name: str, expected: str, observed: str, when: str = "") -> list[tuple[str, str]]:
    pairs = ((word, name), ("Expected", expected), ("Observed", observed), ("When", when))
    return [(word, value) for word, value in pairs if value]


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


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "name": measure.name,
        "value": "not seen" if measure.seconds is None else format_duration(round(measure.seconds, 1)),
        "bound": "" if measure.bound is None else f"limit {format_duration(round(measure.bound, 1))}",
        "about": measure.about,
        "bar": _bar(measure),
        "is_late": measure.is_late or measure.seconds is None,
    }


def _bar(measure: Measure) -> Html:
    """The duration as a bar, its bound as a line; without a bound the text has it all."""
    if measure.bound is None or measure.seconds is None:
        return Html()
    scale = _BAR / max(measure.bound, measure.seconds) / 1.05
    track = tag("rect", x="0", y="1", width=f"{_BAR:g}", height="4", class_="bar-track")
    bar = tag("rect", x="0", y="1", width=f"{measure.seconds * scale:.1f}", height="4", class_="bar-value")
    line = tag("rect", x=f"{measure.bound * scale:.1f}", y="0", width="1", height="6", class_="bar-bound")
    return tag(
        "svg",
        track,
        bar,
        line,
        viewBox=f"0 0 {_BAR:g} 6",
        width="100%",
        height="6",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _band(result: RunResult, timeline: Timeline, recovered: float | None, moments: list[_Moment]) -> Html:
    """From the fault to its end and the undo: a band to scale; "" without a step that was sent."""
    start, (begin, end) = origin(result), window(result, timeline)
    if not any(step.begin is not None for step in result.steps):
        return Html()
    undone = [entry.t for entry, record in timeline.actions if record.phase in ("undo", "undone")]
    healed = min([end, *([] if recovered is None else [start + recovered]), *undone[-1:]])

    def x(t: float) -> float:
        return (min(max(t, begin), end) - begin) / (end - begin) * 100

    def rect(first: float, last: float, kind: str) -> Html:
        width = f"{x(last) - x(first):.2f}%" if last > first else "3"
        return tag("rect", x=f"{x(first):.2f}%", y="0", width=width, height="100%", class_=f"band-{kind}")

    shapes = [rect(begin, end, "whole"), rect(start, healed, "fault")]
    if undone:
        shapes.append(rect(undone[0], undone[-1], "undo"))
    shapes += [rect(t, t, kind) for t, kind, _ in moments]
    if x(healed) - x(start) > _ROOM:
        shapes.append(tag("text", "fault", x=f"{x(start):.2f}%", y="13", dx="8"))
    return tag("svg", join(shapes), width="100%", height="18", class_="band-drawing", aria_hidden="true")


def _moments(result: RunResult, timeline: Timeline, recovered: float | None) -> list[_Moment]:
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
