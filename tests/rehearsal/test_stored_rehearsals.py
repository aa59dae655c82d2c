"""A rehearsal with a run directory has what any run has, can be stopped, and leaves nothing to undo if it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from chaos.app.run.results import JudgeOverrides, Run, judge_recording
from chaos.core.errors import Exit
from chaos.core.ports import Progress
from chaos.core.store.run_directory import RUN, RunInfo, load
from chaos.engine.progress import NullProgress
from chaos.rehearsal.run import RehearsalOptions
from chaos.rehearsal.stored import rehearse_and_store
from tests.kit.processes import ROOT, environment, nodefall
from tests.kit.rehearsals import loaded, settings_of, spec_of

NAME = "graceful-poweroff"
FILES = {
    *("run.json", "plan.json", "experiment.yaml", "journal.jsonl", "recording.jsonl.gz", "debug.log"),
    *("result.json", "report.html", "report.md", "junit.xml", "metrics.txt"),
}
_KILLED = """
import os, sys
from pathlib import Path
from tests.rehearsal.test_stored_rehearsals import Strike, store
store(Path(sys.argv[1]), Strike(lambda: os._exit(9)))
"""


class Strike(NullProgress):
    """Calls ``strike`` when the machine goes down."""

    def __init__(self, strike: Callable[[], object]) -> None:
        self._strike = strike

    def step(self, name: str, node: str, what: str) -> None:
        if what == "systemctl poweroff":
            self._strike()


def store(reports: Path, progress: Progress) -> Run:
    options = RehearsalOptions(settings_of(NAME), progress=progress)
    return rehearse_and_store(loaded(NAME), spec_of(NAME), 1, reports, options)


def test_it_has_the_files_of_a_run(tmp_path: Path) -> None:
    run = store(tmp_path / "reports", NullProgress())
    assert run.result.exit_code == Exit.HELD, run.result.headline
    assert {path.name for path in run.directory.iterdir()} == FILES
    assert "SIMULATED" in run.report.read_text(encoding="utf-8").upper()
    info = load(run.directory, RUN, RunInfo)
    assert (info.run, info.lab_pid) == (run.result.run, os.getpid())
    again = judge_recording(run.directory, loaded(NAME), JudgeOverrides({}, {}, {}))
    assert again.result.hypothesis == run.result.hypothesis
    assert nodefall("undo", "--list", cwd=tmp_path).returncode == 0
    assert NAME in nodefall("runs", cwd=tmp_path).stdout


def test_a_signal_stops_it_and_it_undoes(tmp_path: Path) -> None:
    run = store(tmp_path, Strike(lambda: signal.raise_signal(signal.SIGINT)))
    assert run.result.exit_code == Exit.SIGINT
    assert run.result.undo
    assert all(undo.proven for undo in run.result.undo)


def test_of_a_killed_one_nothing_is_left_to_undo(tmp_path: Path) -> None:
    env = environment(tmp_path) | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _KILLED, str(tmp_path / "reports")]
    assert subprocess.run(command, cwd=tmp_path, env=env, check=False, timeout=120).returncode == 9
    assert nodefall("undo", "--list", cwd=tmp_path).returncode == Exit.UNDO_PENDING
    undone = nodefall("undo", "last", cwd=tmp_path)
    assert undone.returncode == 0, undone.stderr
    assert nodefall("undo", "--list", cwd=tmp_path).returncode == 0
