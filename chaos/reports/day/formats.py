"""The formats of the day's report, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chaos.reports.day import html, json_, junit, markdown, review
from chaos.reports.day.view import DayView


@dataclass(frozen=True, slots=True)
class DayFormat:
    """``file``: its name in the directory of the day. ``for_people``: people edit it, so it is never overwritten."""

    file: str
    render: Callable[[DayView], str]
    for_people: bool = False


FORMATS: Mapping[str, DayFormat] = {
    "html": DayFormat("report.html", html.render),
    "md": DayFormat("report.md", markdown.render),
    "junit": DayFormat("junit.xml", junit.render),
    "json": DayFormat("report.json", json_.render),
    "review": DayFormat("review.md", review.render, for_people=True),
}
