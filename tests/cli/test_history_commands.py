"""``runs``, ``show``, ``trend`` and ``runs prune``: options, output, bad input, completion."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from chaos.cli.app import cli, main
from chaos.core.clock.system import SystemClock
from chaos.core.result import UndoResult
from chaos.core.store.journal import NAME as JOURNAL
from chaos.core.store.journal import Journal
from chaos.core.store.run_directory import RESULT, load_result
from chaos.reports.run.summary import summary
from tests.kit.stored_runs import DAY, NOW, UID, result_of, store, within

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four runs of two experiments on two clusters, and one without a result; the working directory is beside them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    found = tmp_path / "reports"
    store(found, result_of(within(1.0)))
    store(found, result_of(within(50.0), started=NOW + DAY))
    store(found, result_of(within(2.0), started=NOW + 2 * DAY, experiment="f"))
    lab = {"metadata": {"name": "lab"}}
    store(found, result_of(within(2.0), started=NOW + 3 * DAY, simulated=True, cluster_uid="aaaa"), inventory=lab)
    store(found, None, started=NOW + 4 * DAY)
    return found


def names(capsys: Capture, *arguments: str) -> list[str]:
    assert main(["runs", "--json", *arguments]) == 0
    return [run["name"] for run in json.loads(capsys.readouterr().out)["runs"]]


FIRST, SECOND, OTHER = "e/20261121T033533Z", "e/20261122T033533Z", "f/20261123T033533Z"
LAB, KILLED = "e/20261124T033533Z", "e/20261125T033533Z"
FILTERS = [
    ([], [KILLED, LAB, OTHER, SECOND, FIRST]),
    (["--experiment", "f"], [OTHER]),
    (["--experiment", "*"], []),
    (["--verdict", "violated"], [SECOND]),
    (["--verdict", "violated", "--verdict", "no-result"], [KILLED, SECOND]),
    (["--cluster", "lab"], [LAB]),
    (["--cluster", "aaaa"], [LAB]),
    (["--cluster", UID[:6]], [KILLED, OTHER, SECOND, FIRST]),
    (["--cluster", ""], []),
    (["--since", "2026-11-22"], [KILLED, LAB, OTHER, SECOND]),
    (["--since", "2026-11-22T03:35:33"], [KILLED, LAB, OTHER, SECOND]),
    (["--since", "2026-11-22T03:35:33-01:00"], [KILLED, LAB, OTHER]),
    (["--until", "2026-11-22"], [FIRST]),
    (["--since", "2026-11-22", "--until", "2026-11-24"], [OTHER, SECOND]),
    (["--since", "2027-01-01"], []),
]


@pytest.mark.parametrize(("arguments", "expected"), FILTERS, ids=[" ".join(case[0]) for case in FILTERS])
@pytest.mark.usefixtures("reports")
def test_runs_are_filtered(capsys: Capture, arguments: list[str], expected: list[str]) -> None:
    assert names(capsys, *arguments) == expected


@pytest.mark.parametrize(("now", "expected"), [(DAY, [LAB, OTHER]), (1.5 * DAY, [LAB])])
@pytest.mark.usefixtures("reports")
def test_an_age_counts_from_now(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, now: float, expected: list[str]
) -> None:
    monkeypatch.setattr(SystemClock, "now", lambda _: NOW + 3 * DAY + now)
    assert names(capsys, "--since", "2d", "--verdict", "held") == expected


@pytest.mark.usefixtures("reports")
def test_runs_prints_a_table(capsys: Capture) -> None:
    assert main(["runs", "--verdict", "violated"]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["RUN", f"e-{int(NOW + DAY)}"]
    assert not err


def test_no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == 0
    assert tuple(capsys.readouterr()) == ("", "no runs in reports\n")
    assert names(capsys) == []


@pytest.mark.usefixtures("reports")
def test_no_run_fits(capsys: Capture) -> None:
    assert main(["runs", "--experiment", "x"]) == 0
    assert tuple(capsys.readouterr()) == ("", "none of 5 runs in reports matches\n")


@pytest.mark.parametrize("name", [SECOND, f"e-{int(NOW + DAY)}", f"reports/{SECOND}"])
def test_show_prints_the_summary_of_the_run(reports: Path, capsys: Capture, name: str) -> None:
    (reports / SECOND / "report.html").write_text("x")
    assert main(["show", name]) == 0
    out, err = capsys.readouterr()
    assert out == summary(load_result(reports / SECOND), report=f"reports/{SECOND}/report.html")
    assert not err


def test_show_as_json_is_the_stored_result(reports: Path, capsys: Capture) -> None:
    stored = json.loads((reports / OTHER / RESULT).read_text())
    assert main(["show", "f", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == stored


@pytest.mark.usefixtures("reports")
def test_trend(capsys: Capture) -> None:
    assert main(["trend", "e", "--cluster", "staging"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("e: 2 runs from ")
    assert "left out: 1 run without a result" in out
    assert main(["trend", "e"]) == 0
    assert capsys.readouterr().out.startswith("e: 1 run from ")


def test_trend_in_other_formats(reports: Path, capsys: Capture) -> None:
    assert main(["trend", "e", "--json", "--cluster", UID]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in document["runs"]] == [FIRST, SECOND]
    assert main(["trend", "e", "--cluster", UID, "--experiment-hash", document["group"]["experiment_hash"][:7]]) == 0
    capsys.readouterr()
    assert main(["trend", "e", "--format", "html", "--out", "trend.html"]) == 0
    assert not capsys.readouterr().out
    assert (reports.parent / "trend.html").read_text().endswith("</html>\n")


BAD: list[tuple[list[str], str]] = [
    (["runs", "--verdict", "good"], "'good' is not one of"),
    (["runs", "--since", "yesterday"], "'yesterday' is not a time; write it like 2026-11-21"),
    (["runs", "--until", "2026-13-01"], "is not a time"),
    (["runs", "--since", "10000-01-01"], "is not a time"),
    (["runs", "--reports", "missing"], "--reports: no directory missing"),
    (["runs", "--reports", f"reports/{FIRST}/{RESULT}"], "is a file"),
    (["runs", "prone"], "prone"),
    (["runs", "prune"], "give --keep N, --older-than DURATION or both"),
    (["runs", "--reports", ".", "prune", "--keep", "1"], "--reports before 'prune' has no effect"),
    (["runs", "--verdict", "held", "prune", "--keep", "1"], "--verdict before 'prune' has no effect"),
    (["runs", "prune", "--keep", "-1"], "--keep"),
    (["runs", "prune", "--keep", "many"], "--keep"),
    (["runs", "prune", "--older-than", "a month"], "--older-than: invalid duration"),
    (["runs", "prune", "--older-than", "-1d"], "--older-than: invalid duration"),
    (["show"], "RUN"),
    (["show", "nothing"], "no run 'nothing' in reports"),
    (["show", KILLED], "has no result: it was killed, or is running on another machine"),
    (["show", "last", "--reports", "missing"], "--reports: no directory missing"),
    (["trend"], "EXPERIMENT"),
    (["trend", "nothing"], "no trend of 'nothing' in reports: it has no runs"),
    (["trend", "e", "--cluster", "x"], "none of its 4 runs has a result and fits the options"),
    (["trend", "../reports"], "'../reports' is not the name of an experiment"),
    (["trend", ".."], "'..' is not the name of an experiment"),
    (["trend", "*"], "'*' is not the name of an experiment"),
    (["trend", "e", "--format", "pdf"], "'pdf' is not one of"),
    (["trend", "e", "--mix", "all"], "'all' is not one of"),
    (["trend", "e", "--out", "missing/x.html"], "cannot write missing/x.html"),
    (["run", "--repeat", "0"], "--repeat"),
    (["run", "--repeat", "2", "--plan", "plan.json"], "--repeat cannot be combined with --plan"),
    (["run", "e.yaml", "--repeat", "2", "--record", "r.gz"], "--repeat cannot be combined with --record"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(case[0]) for case in BAD])
@pytest.mark.usefixtures("reports")
def test_bad_input(capsys: Capture, arguments: list[str], message: str) -> None:
    assert main(arguments) == 64
    out, err = capsys.readouterr()
    assert message in err
    assert "error: " in err
    assert not out


@pytest.mark.parametrize("damage", [b"{", b"\xff", b"[]", b'{"version": "1"}'])
def test_a_damaged_result_is_an_error_of_show_only(reports: Path, capsys: Capture, damage: bytes) -> None:
    (reports / SECOND / RESULT).write_bytes(damage)
    assert main(["show", SECOND]) == 64
    assert (
        f"the run reports/{SECOND} is damaged: reports/{SECOND}/result.json cannot be read" in capsys.readouterr().err
    )
    assert SECOND in names(capsys, "--verdict", "damaged")
    assert main(["trend", "e"]) == 0


def test_show_of_a_run_that_goes_on(reports: Path, capsys: Capture) -> None:
    with Journal(reports / KILLED):
        assert main(["show", KILLED]) == 64
    assert "has no result yet: it is going on" in capsys.readouterr().err


def test_prune_needs_a_confirmation(reports: Path, capsys: Capture) -> None:
    assert main(["runs", "prune", "--keep", "1"]) == 4
    assert "not confirmed: there is no terminal to ask" in capsys.readouterr().err
    assert (reports / FIRST).exists()


def test_prune_prints_bytes_and_deletes(reports: Path, capsys: Capture) -> None:
    size = sum(path.stat().st_size for name in (FIRST, SECOND) for path in (reports / name).iterdir())
    assert main(["runs", "prune", "--keep", "2", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"would delete 2 runs, {size:,} bytes"
    assert (reports / FIRST).exists()
    assert main(["runs", "prune", "--keep", "2", "--yes"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"deleted 2 runs, {size:,} bytes"
    assert names(capsys) == [KILLED, LAB, OTHER]


def test_prune_as_json(reports: Path, capsys: Capture) -> None:
    (reports / SECOND / JOURNAL).write_bytes(b"{\n")
    assert main(["runs", "prune", "--keep", "1", "--yes", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in document["deleted"]] == [LAB, FIRST]
    assert [(row["name"], row["reason"][:7]) for row in document["staying"]] == [(SECOND, "damaged")]
    assert document["bytes"] == sum(row["bytes"] for row in document["deleted"])
    assert document["dry_run"] is False


def test_prune_that_deletes_nothing_asks_nothing(reports: Path, capsys: Capture) -> None:
    assert main(["runs", "prune", "--older-than", "365d"]) == 0
    assert capsys.readouterr().out == "deleted 0 runs, 0 bytes\n"
    assert reports.exists()


def test_a_file_that_cannot_be_deleted_is_an_error_after_the_others(
    reports: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    unlink = os.unlink
    failed: list[str] = []

    def refuse_first(name: str, *, dir_fd: int) -> None:
        if not failed:
            failed.append(name)
            raise PermissionError(1, "Operation not permitted", name)
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse_first)
    assert main(["runs", "prune", "--keep", "2", "--yes"]) == 2
    out, err = capsys.readouterr()
    assert "deleted 1 run, " in out
    assert "error: cannot delete " in err
    assert "Operation not permitted" in err
    assert (reports / SECOND).exists()


def test_one_json_object_also_for_what_is_in_use(reports: Path, capsys: Capture) -> None:
    """An undo of a finished run begins after the selection."""
    with Journal(reports / SECOND):
        assert main(["runs", "prune", "--keep", "2", "--yes", "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in document["deleted"]] == [FIRST]
    assert "going on" in document["staying"][0]["reason"]
    assert (reports / SECOND).exists()


@pytest.mark.usefixtures("reports")
def test_a_log_is_written_by_the_list_too(tmp_path: Path) -> None:
    assert main(["runs", "--log-file", "log.txt"]) == 0
    assert (tmp_path / "log.txt").exists()


COMPLETIONS = [
    (["show"], "", ["last", "e", "f", "e/", "f/"]),
    (["show"], "la", ["last"]),
    (["show"], "e/", [KILLED, LAB, SECOND, FIRST]),
    (["show"], "e/20261121", [FIRST]),
    (["show"], "x/", []),
    (["report"], "f", ["f", "f/"]),
    (["undo"], "f/", [OTHER]),
    (["trend"], "", ["e", "f"]),
    (["runs", "--experiment"], "f", ["f"]),
    (["show", "--reports", "missing"], "", ["last"]),
]


@pytest.mark.parametrize(("arguments", "incomplete", "expected"), COMPLETIONS)
@pytest.mark.usefixtures("reports")
def test_completion(arguments: list[str], incomplete: str, expected: list[str]) -> None:
    completer = ShellComplete(cli, {}, "nodefall", "_NODEFALL_COMPLETE")
    assert [item.value for item in completer.get_completions(arguments, incomplete)] == expected


@pytest.mark.parametrize("name", ["runs", "show", "trend"])
def test_help_names_every_option(name: str, capsys: Capture) -> None:
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    command = cli.get_command(click.Context(cli), name)
    assert command
    shown = [each for each in command.params if not (isinstance(each, click.Option) and each.hidden)]
    assert all(option in out for parameter in shown for option in parameter.opts if option.startswith("--"))
    assert "Examples:" in out


def test_an_undone_run_asks_for_no_undo(tmp_path: Path, capsys: Capture) -> None:
    undo = (UndoResult("s", "cordon", "n", False, "no answer"),)
    directory = store(tmp_path, result_of(within(1.0), undo=undo))  # the journal has nothing pending
    main(["show", str(directory)])
    assert "undo no longer pending: s (cordon on n): no answer" in capsys.readouterr().out
    (directory / JOURNAL).unlink()
    main(["show", str(directory)])
    assert "undo pending: s (cordon on n): no answer" in capsys.readouterr().out
