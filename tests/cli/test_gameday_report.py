"""``nodefall gameday report``: which day, which format, where to."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from chaos.cli.app import main
from chaos.cli.complete import complete_day as _complete_day
from chaos.cli.complete import complete_day_format as _complete_format
from chaos.cli.gameday.commands import report_command as report
from chaos.core.store import day_directory, run_directory
from tests.kit.recorded_days import ran, record


def write(folder: Path, day: str = "mon") -> Path:
    """A day in ``folder/reports``."""
    directory = day_directory.choose(folder / "reports", "monthly", day, "staging", lambda _: True)
    run_directory.save(directory, "cluster-staging.json", record(ran("drain", "violated", reason="late"), day=day))
    return directory


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_formats_are_written_to_the_directory(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = write(here)
    assert main(["gameday", "report"]) == 0
    assert capsys.readouterr().out == "reports/gamedays/monthly/mon/report.html\n"
    files = {"cluster-staging.json", "junit.xml", "report.html", "report.json", "report.md", "review.md"}
    assert {path.name for path in directory.iterdir()} == files


@pytest.mark.parametrize("name", ["last", "monthly", "monthly/mon", "reports/gamedays/monthly/mon"])
def test_one_format_is_printed(here: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    directory = write(here)
    assert main(["gameday", "report", name, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["headline"] == "1 violated; drain"
    assert [path.name for path in directory.iterdir()] == ["cluster-staging.json"]


def test_one_format_into_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here)
    assert main(["gameday", "report", "--format", "review", "--out", "review.md"]) == 0
    assert capsys.readouterr().out == ""
    assert (here / "review.md").read_text().startswith("# Review: Node failures, day mon of monthly\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "error: no game day 'nowhere' in reports/gamedays\nhint: give its directory"),
        (["--format", "pdf"], "unknown format 'pdf'\nhint: use one of html, md, junit, json, review"),
        (["--out", "x"], "error: --out needs --format"),
        (["--format", "md", "--out", "no/where"], "error: cannot write no/where: No such file or directory"),
    ],
)
def test_bad_input(here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    write(here)
    assert main(["gameday", "report", *arguments]) == 64
    assert message in capsys.readouterr().err


def test_a_directory_that_cannot_be_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (write(here) / "report.md").mkdir()
    assert main(["gameday", "report"]) == 64
    assert "cannot write reports/gamedays/monthly/mon/report.md: Is a directory" in capsys.readouterr().err


def test_completion(here: Path) -> None:
    write(here, "2026-12-01")
    write(here, "2027-01-05")
    context = click.Context(report)
    assert _complete_day(context, report.params[0], "monthly/2026") == ["monthly/2026-12-01"]
    assert _complete_format(context, report.params[0], "j") == ["junit", "json"]
