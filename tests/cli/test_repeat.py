"""``run --repeat``: when a series ends, its exit code and its document; the runs themselves are stand-ins here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.app.run.results import Run
from chaos.cli.app import TerminationSignal
from chaos.cli.run import series as repeat
from chaos.cli.run.run import OutputOptions, RunOptions
from chaos.core.errors import NodefallError, Refused, UndoPending
from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.reports.history.series import derived_seed
from tests.kit.processes import EXPERIMENTS, LAB, nodefall
from tests.kit.stored_runs import DAY, NOW, result_of, store, within

End = RunResult | BaseException
Series = Callable[..., tuple[int, list[int], str, str]]
ABORTED = result_of(within(1), exit_code=2, headline="aborted: a node was lost")
HELD, VIOLATED = result_of(within(3)), result_of(within(50))


@pytest.fixture
def series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Series:
    """Runs a series in which each run ends as given: exit code, seeds of the runs, stdout, stderr."""

    def run(*ends: End, count: int = 5, seed: int | None = 7, **output: bool) -> tuple[int, list[int], str, str]:
        seeds: list[int] = []
        left: Iterator[tuple[int, End]] = iter(enumerate(ends))

        def run_once(_: object, __: object, ___: object, seed: int, ____: object, *, series: str) -> Run:
            seeds.append(seed)
            assert series == f"{len(seeds)} of {count}"
            day, end = next(left)
            if isinstance(end, BaseException):
                raise end
            stored = _shifted(end, day)
            return Run(stored, Timeline(), store(tmp_path / "reports", stored))

        monkeypatch.setattr(repeat, "run_once", run_once)
        monkeypatch.setattr(repeat, "load_inputs", lambda _: (None, None))
        monkeypatch.setattr(repeat, "tune_gc", lambda: None)
        monkeypatch.setattr(repeat, "free_finished_run", lambda: None)  # of a process with all tests it takes seconds
        options = RunOptions(Path("e.yaml"), "i.yaml", tmp_path, seed)
        code = repeat.run_series(options, count, OutputOptions(plain=True, **output))
        out, err = capsys.readouterr()
        return code, seeds, out, err

    return run


def _shifted(result: RunResult, days: int) -> RunResult:
    started = NOW + days * DAY
    return result_of(*result.hypothesis, started=started, headline=result.headline, exit_code=result.exit_code)


SEEDS = [7, *(derived_seed(7, index) for index in range(1, 5))]
ENDS: list[tuple[str, list[End], int, int, str]] = [
    # name, how the runs end, runs, exit code, why the series stopped
    ("all hold", [HELD] * 5, 5, 0, ""),
    ("a violation stops nothing", [HELD, VIOLATED, HELD, HELD, HELD], 5, 1, ""),
    ("an abort", [HELD, ABORTED], 2, 2, "aborted: a node was lost"),
    ("an abort after a violation", [VIOLATED, ABORTED], 2, 1, "aborted: a node was lost"),
    ("a pending undo", [VIOLATED, result_of(within(1), exit_code=3)], 2, 3, "an undo is pending"),
    ("a refusal", [HELD, Refused("no", hint="ask")], 2, 4, "no (ask)"),
    ("a refusal without a steady state", [result_of(exit_code=4, headline="refused: x")], 1, 4, "refused: x"),
    ("an undo that did not finish", [VIOLATED, UndoPending("lost")], 2, 3, "lost"),
    ("Ctrl-C between runs", [HELD, KeyboardInterrupt()], 2, 130, "interrupted"),
    ("SIGTERM between runs", [VIOLATED, TerminationSignal()], 2, 143, "interrupted"),
    (
        "Ctrl-C",
        [HELD, result_of(exit_code=130, headline="interrupted by SIGINT before every verdict was decided")],
        2,
        130,
        "interrupted by SIGINT before every verdict was decided",
    ),
    ("an abort in the last run", [HELD, HELD, HELD, HELD, ABORTED], 5, 2, ""),
]


@pytest.mark.parametrize(("ends", "runs", "code", "stopped"), [case[1:] for case in ENDS], ids=[c[0] for c in ENDS])
def test_when_a_series_ends(series: Series, ends: list[End], runs: int, code: int, stopped: str) -> None:
    found, seeds, out, err = series(*ends)
    assert (found, seeds) == (code, SEEDS[:runs])
    lines = out.splitlines()
    assert err.startswith("run 1 of 5, seed 7\n")
    assert [line for line in lines if line.startswith("stopped: ")] == ([f"stopped: {stopped}"] if stopped else [])
    finished = sum(isinstance(end, RunResult) for end in ends)
    assert any(line.startswith(f"series: {finished} of 5 runs of e: ") for line in lines)
    assert "seed of the series: 7" in lines


@pytest.mark.parametrize("error", [Refused("no"), NodefallError("x"), KeyboardInterrupt()])
def test_an_error_of_the_first_run_is_that_of_the_command(series: Series, error: BaseException) -> None:
    with pytest.raises(type(error)):
        series(error)


def test_the_document(series: Series) -> None:
    code, _, out, _ = series(HELD, VIOLATED, count=2, as_json=True)
    document: dict[str, Any] = json.loads(out)
    assert (code, document["exit_code"]) == (1, 1)
    assert (document["requested"], document["seed"], document["stopped"]) == (2, 7, "")
    assert document["verdicts"] == {"held": 1, "violated": 1}
    assert [run["seed"] for run in document["runs"]] == SEEDS[:2]
    assert [run["result"]["status"] for run in document["runs"]] == ["held", "violated"]
    assert document["expectations"][0]["counts"] == {"held": 1, "violated": 1}


def test_without_a_seed_each_series_has_another(series: Series) -> None:
    _, seeds, out, _ = series(HELD, count=1, seed=None)
    assert seeds != [7]
    assert f"seed of the series: {seeds[0]}" in out


@pytest.mark.parametrize("as_json", [True, False])
def test_a_quiet_series_prints_its_result_only(series: Series, as_json: bool) -> None:
    _, _, out, err = series(HELD, HELD, count=2, quiet=True, as_json=as_json)
    assert err == ""
    assert json.loads(out)["exit_code"] == 0 if as_json else "series: 2 of 2 runs" in out


@pytest.mark.lab
def test_a_series_on_the_lab_is_two_ordinary_runs(tmp_path: Path) -> None:
    experiment = EXPERIMENTS / "cordon.yaml"
    done = nodefall("run", experiment, "-i", LAB, "--repeat", "2", "--seed", "3", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["verdicts"] == {"held": 2}
    assert [run["seed"] for run in document["runs"]] == [3, derived_seed(3, 1)]
    listed = json.loads(nodefall("runs", "--json", cwd=tmp_path).stdout)["runs"]
    assert [run["directory"] for run in listed] == [run["directory"] for run in document["runs"]][::-1]
    trend = json.loads(nodefall("trend", "cordon", "--json", cwd=tmp_path).stdout)
    assert len(trend["runs"]) == 2, "labs with another seed are the same cluster"
    assert trend["expectations"] == document["expectations"]
    pruned = nodefall("runs", "prune", "--keep", "0", "--yes", "--json", cwd=tmp_path)
    assert len(json.loads(pruned.stdout)["deleted"]) == 2, pruned.stderr
    assert list((tmp_path / "reports").iterdir()) == []
