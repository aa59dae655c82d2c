"""Events of a day: what they say of a run, and where its report is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.app.day import events
from chaos.app.run.results import Run
from chaos.gameday.events import DayEvent, NoNotifier, details, slack_message, teams_message, webhook_document
from tests.kit.day_session import Day

BEGIN = 1_796_115_600.0


class Sent(NoNotifier):
    def __init__(self) -> None:
        self.events: list[DayEvent] = []

    def send(self, event: DayEvent) -> None:
        self.events.append(event)


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("", ""),
        (
            "https://ci.example/job/1/artifact/reports",
            "https://ci.example/job/1/artifact/reports/one%20x/T/report.html",
        ),
        ("https://ci.example/", "https://ci.example/one%20x/T/report.html"),
    ],
)
@pytest.mark.parametrize("is_absolute", [True, False])
def test_a_report_is_an_absolute_link_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str, url: str, is_absolute: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(events, "run_metrics", lambda *_: ())
    day = Day(tmp_path, ["one"], BEGIN)
    reports = tmp_path / "reports" if is_absolute else Path("reports")
    day.session.request = replace(day.session.request, reports=reports, report_url=base)
    day.session.notifier = sent = Sent()
    done: Any = SimpleNamespace(report=reports / "one x" / "T" / "report.html", result=None, timeline=None)
    events.send_entry_end(day.session, day.session.state.runs[0], cast("Run", done))
    (event,) = sent.events
    assert event.report == url == webhook_document(event)["report"]
    assert dict(details(event)).get("report", "") == url
    for message in (slack_message(event), teams_message(event)):
        assert ("report.html" in str(message)) is bool(url)
