"""The same experiment, lab and seed give the same recording, byte for byte, in every process; it is like any other."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.app.judge import JudgedRun, JudgeOverrides, judge_recording
from chaos.app.load import load
from chaos.app.registry import load_registry
from chaos.core.store.recording import build_timeline, read_recording
from tests.kit.command import command
from tests.kit.processes import EXPERIMENTS, ROOT, environment
from tests.kit.rehearsals import rehearse

NAME = "graceful-poweroff"
RUNS = (NAME, 1), (NAME, 7), ("drain-blocked", 1), ("partition-waited-out", 1)
_CODE = f"""
import sys
from pathlib import Path
from tests.kit.rehearsals import rehearse
for name, seed in {RUNS}:
    rehearse(name, seed, recording=Path(sys.argv[1], f"{{name}}-{{seed}}"))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, JudgedRun]:
    """A rehearsal of graceful-poweroff, with its recording."""
    path = tmp_path_factory.mktemp("rehearsed") / "recording.jsonl.gz"
    return path, rehearse(NAME, recording=path)


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    env = environment(tmp_path) | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", _CODE, str(tmp_path)], cwd=ROOT, env=env, check=True, timeout=120)
    digests = set()
    for name, seed in RUNS:
        mine = tmp_path / "mine"
        rehearse(name, seed, recording=mine)
        digests.add(hashlib.sha256(mine.read_bytes()).hexdigest())
        assert mine.read_bytes() == (tmp_path / f"{name}-{seed}").read_bytes()
    assert len(digests) == len(RUNS)


def test_it_is_judged_like_any_other(recorded: tuple[Path, JudgedRun]) -> None:
    path, run = recorded
    registry = load_registry()
    loaded = load(EXPERIMENTS / f"{NAME}.yaml", registry)
    again = judge_recording(path, loaded, JudgeOverrides({}, {}, {}), registry)
    assert [(v.name, v.status, v.because) for v in again.result.hypothesis] == [
        (v.name, v.status, v.because) for v in run.result.hypothesis
    ]


def test_it_can_be_replayed(recorded: tuple[Path, JudgedRun]) -> None:
    done = command("lab", "replay", recorded[0], "--json")
    assert done.returncode == 0, done.stdout


def test_times_are_exact(tmp_path: Path, recorded: tuple[Path, JudgedRun]) -> None:
    """No interval of a version has a width: nothing was received later than it happened."""
    path, run = recorded
    versions = [version for history in run.timeline.pods.values() for version in history]
    assert versions
    assert all(version.earliest == version.latest == version.t for version in versions)
    assert run.timeline.blind_windows == build_timeline(read_recording(path)).blind_windows
    run.write(tmp_path)
    assert "SIMULATED" in (tmp_path / "report.html").read_text(encoding="utf-8").upper()
