"""The record and the report of a day: written at its end, however it ends, and rendered again from the directory."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from chaos.app.day.report import keep_record, load_day, make_record, reporting, write_reports
from chaos.core.errors import UsageError
from chaos.core.store import run_directory
from chaos.core.store.run_directory import RunInfo
from chaos.core.verdict import Status
from chaos.gameday.transitions import before_fault, begin, finish, skip_rest
from chaos.reports.day.view import ClusterRecord
from tests.kit.day_session import Day
from tests.kit.recorded_days import judged, result

BEGIN = 1_796_115_600.0  # 2026-12-01 09:00 UTC
FILES = {"cluster-fake.json", "junit.xml", "report.html", "report.json", "report.md", "review.md"}


def run_of(day: Day, entry: str, run: str, *, has_result: bool = True) -> None:
    """The entry runs, and is violated; its directory is that of a run."""
    session, key = day.session, next(r.key for r in day.session.state.runs if r.key.entry == entry)
    session.update(partial(begin, key=key, run=run, epoch=1, now=session.now()))
    session.update(partial(before_fault, key=key, run=run, epoch=1))
    day.clock.t += 60.0
    session.update(lambda state: finish(state, key, run, "violated", 1, session.now(), "one pod stayed"))
    directory = run_directory.create(session.request.reports, entry, BEGIN)
    run_directory.save(directory, run_directory.RUN, RunInfo(run, entry, BEGIN, {}))
    if has_result:
        made = result(judged("pods move", Status.VIOLATED, "one pod stayed"), status=Status.VIOLATED)
        run_directory.save(directory, run_directory.RESULT, made)


def directory_of(day: Day) -> Path:
    (found,) = (day.session.request.reports / "gamedays" / "days").iterdir()
    return found


def test_the_report_of_a_day_with_a_violation(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one", "two"], BEGIN)
    with reporting(day.session):
        run_of(day, "one", "one-1")
    directory = directory_of(day)
    assert directory.name == "mon"
    assert {path.name for path in directory.iterdir()} == FILES
    assert all(path.stat().st_mode & 0o077 == 0 for path in (directory, *directory.iterdir()))
    assert day.lines.lines == [f"report of the day: {directory / 'report.html'}"]
    document = json.loads((directory / "report.json").read_text())
    assert (document["status"], document["headline"]) == ("violated", "1 violated, 1 skipped of 2 runs; one")
    assert [(lesson["kind"], lesson["what"]) for lesson in document["lessons"]] == [
        ("violated", "pods move"),
        ("not run", "it did not take place"),
    ]
    link = document["runs"][0]["report"]
    assert (directory / link).resolve().parent == tmp_path / "reports" / "one" / "20261201T090000Z"


def test_it_is_written_whatever_ends_the_day_but_the_review_only_at_its_end(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    with pytest.raises(KeyboardInterrupt), reporting(day.session):
        raise KeyboardInterrupt
    assert {path.name for path in directory_of(day).iterdir()} == FILES - {"review.md"}


def test_a_report_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    (tmp_path / "reports").write_text("not a directory")
    with reporting(day.session):
        pass
    (line,) = day.lines.lines
    assert line.startswith("cannot write the report of the day: cannot create the directory of the game day")


def test_the_same_day_goes_on_in_its_directory_and_another_one_has_its_own(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    first = keep_record(day.session)
    run_of(day, "one", "one-1")
    assert keep_record(day.session) == first
    another = Day(tmp_path, ["one"], BEGIN + 86400.0)
    assert keep_record(another.session) == first.with_name("mon-2")
    assert load_day(first).status == "violated"


def test_directories_of_runs_stay_known_on_a_machine_that_does_not_have_them(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    run_of(day, "one", "one-1")
    directory = keep_record(day.session)
    known = run_directory.load(directory, "cluster-fake.json", ClusterRecord).directories
    assert known == {"one-1": "one/20261201T090000Z"}
    for path in (tmp_path / "reports" / "one").rglob("*.json"):
        path.unlink()
    keep_record(day.session)
    assert run_directory.load(directory, "cluster-fake.json", ClusterRecord).directories == known
    assert load_day(directory).runs[0].result is None


def test_clusters_of_one_day_share_a_report(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    directory = keep_record(day.session)
    other = replace(make_record(day.session), cluster="prod")
    run_directory.save(directory, "cluster-prod.json", other)
    assert load_day(directory).clusters == ("fake", "prod")


def test_a_review_that_was_edited_is_not_overwritten(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    day.session.update(lambda state: skip_rest(state, "gate x", 1, BEGIN))
    directory = keep_record(day.session)
    write_reports(directory)
    (directory / "review.md").write_text("what we think")
    (directory / "report.md").write_text("old")
    write_reports(directory)
    assert (directory / "review.md").read_text() == "what we think"
    assert "## Verdicts" in (directory / "report.md").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "unknown version 2"),
        ({"window": {"zone": "Mars/Olympus"}}, "unknown time zone"),
        ({"window": {"open": 1}}, "invalid record of a game day"),
        ({"state": None}, "cannot be read: Expected `object`, got `null`"),
        ({"directories": []}, "cannot be read"),
    ],
)
def test_records_that_are_damaged(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    directory = keep_record(day.session)
    path = directory / "cluster-fake.json"
    path.write_bytes(msgspec.json.encode(json.loads(path.read_text()) | changes))
    with pytest.raises(UsageError, match=message):
        load_day(directory)


def test_a_record_leads_to_no_file_elsewhere(tmp_path: Path) -> None:
    day = Day(tmp_path, ["one"], BEGIN)
    run_of(day, "one", "one-1")
    directory = keep_record(day.session)
    path = directory / "cluster-fake.json"
    text = json.loads(path.read_text()) | {"directories": {"one-1": "../one/20261201T090000Z"}}
    path.write_text(json.dumps(text))
    (run,) = load_day(directory).runs
    assert (run.result, run.link) == (None, "")
