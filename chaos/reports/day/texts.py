"""Texts that several formats of the day's report share."""

from __future__ import annotations

from chaos.core.text import on_node
from chaos.reports.day.view import DayView

SIMULATED = "Simulated: {}. That shows what the lab models, not what your cluster does."
NOTHING_LEARNED = "Nothing unexpected: every run took place, and held."


def title(view: DayView) -> str:
    """``day 2026-12-01 of monthly``."""
    return f"day {view.day} of {view.gameday}"


def window_lines(view: DayView) -> list[str]:
    """The window with its freezes, and the schedule."""
    window = view.calendar.window
    hours = "; ".join(map(str, window.open)) or "day and night"
    freezes = f", except {'; '.join(map(str, window.not_))}" if window.not_ else ""
    lines = ["The window is always open" if view.calendar.always_open else f"The window: {hours}{freezes}"]
    if view.schedule:
        lines.append(f"The schedule: {view.schedule}")
    return [f"{line} ({view.calendar.zone})." for line in lines]


def details(view: DayView) -> list[tuple[str, str]]:
    """Circumstances of the day, as (name, value)."""
    several = len(view.records) > 1
    facts = [
        ("Game day", f"{view.title} ({view.gameday})"),
        ("Owner", view.owner),
        ("Gates", "; ".join(view.gates) or "none"),
        ("Abort conditions", "; ".join(view.abort) or "none"),
    ]
    for record in view.records:
        state, where = record.state, record.cluster if several else ""
        facts += [
            (on_node("Plan", where), f"sha256 {state.plan_hash}"),
            (on_node("Seed", where), str(state.seed)),
            (on_node("Run by", where), state.holder or "no process"),
            (on_node("Takeovers", where), str(max(state.epoch - 1, 0))),
            (on_node("Status", where), str(state.status)),
        ]
    return facts
