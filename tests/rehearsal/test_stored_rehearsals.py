"""A rehearsal with a run directory has what any run has, can be stopped, and leaves nothing to undo if it is killed.

The same experiment, lab and seed give the same recording, byte for byte, in every process.
"""

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
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.store.run_directory import RUN, RunInfo, load
from chaos.engine.progress import NullProgress
from chaos.rehearsal.run import RehearsalOptions, rehearse_and_store
from tests.kit.command import command
from tests.kit.processes import ROOT, environment
from tests.kit.rehearsals import loaded, rehearse, settings_of, spec_of
from tools.replay.__main__ import main as replay_main

NAME = "graceful-poweroff"
FILES = {
    *("run.json", "plan.json", "experiment.yaml", "workload.yaml", "journal.jsonl", "recording.jsonl.gz", "debug.log"),
    *("result.json", "report.html", "report.md", "junit.xml", "metrics.txt"),
}
RUNS = (NAME, 1), (NAME, 7), ("drain-blocked", 1), ("partition-waited-out", 1)
_REHEARSED = f"""
import sys
from pathlib import Path
from tests.kit.rehearsals import rehearse
for name, seed in {RUNS}:
    rehearse(name, seed, recording=Path(sys.argv[1], f"{{name}}-{{seed}}"))
"""
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
    moved = run.directory.rename(tmp_path / "moved")
    judged = command("judge", str(moved), cwd=tmp_path)
    assert (judged.returncode, judged.stdout.splitlines()[0]) == (0, f"{run.result.headline} (simulated cluster)")
    moved.rename(run.directory)
    assert command("judge", "last", cwd=tmp_path).stdout == judged.stdout
    assert str(ROOT) not in "".join((run.directory / name).read_text() for name in ("experiment.yaml", "workload.yaml"))
    assert command("undo", "--list", cwd=tmp_path).returncode == 0
    assert NAME in command("runs", cwd=tmp_path).stdout
    assert replay_main([str(run.directory / "recording.jsonl.gz"), "--json"]) == 0


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    env = environment(tmp_path) | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", _REHEARSED, str(tmp_path)], cwd=ROOT, env=env, check=True, timeout=120)
    written = set()
    for name, seed in RUNS:
        mine = tmp_path / f"{name}-{seed}-here"
        rehearse(name, seed, recording=mine)
        assert mine.read_bytes() == (tmp_path / f"{name}-{seed}").read_bytes()
        written.add(mine.read_bytes())
    assert len(written) == len(RUNS)


def test_times_are_exact(tmp_path: Path) -> None:
    """No interval of a version has a width: nothing was received later than it happened."""
    path = tmp_path / "recording.jsonl.gz"
    timeline = rehearse(NAME, recording=path).timeline
    versions = [version for history in timeline.pods.values() for version in history]
    assert versions
    assert all(version.earliest == version.latest == version.t for version in versions)
    assert timeline.blind_windows == build_timeline(read_recording(path)).blind_windows


def test_a_signal_stops_it_and_it_undoes(tmp_path: Path) -> None:
    run = store(tmp_path, Strike(lambda: signal.raise_signal(signal.SIGINT)))
    assert run.result.exit_code == Exit.SIGINT
    assert run.result.undo
    assert all(undo.proven for undo in run.result.undo)


def test_of_a_killed_one_nothing_is_left_to_undo(tmp_path: Path) -> None:
    env = environment(tmp_path) | {"PYTHONPATH": str(ROOT)}
    killed = [sys.executable, "-c", _KILLED, str(tmp_path / "reports")]
    assert subprocess.run(killed, cwd=tmp_path, env=env, check=False, timeout=120).returncode == 9
    assert command("undo", "--list", cwd=tmp_path).returncode == Exit.UNDO_PENDING
    undone = command("undo", "last", cwd=tmp_path)
    assert undone.returncode == 0, undone.stderr
    assert command("undo", "--list", cwd=tmp_path).returncode == 0
