"""The same experiment, lab and seed give the same recording, byte for byte, in every process; it is like any other."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.app.run.results import JudgeOverrides, judge_recording
from chaos.core.store.recording import build_timeline, read_recording
from chaos.engine.load import load
from chaos.engine.registry import load_registry
from tests.kit.processes import EXPERIMENTS, ROOT, environment, nodefall
from tests.kit.rehearsals import rehearse

_NAMES = ("graceful-poweroff", "drain-blocked", "partition-waited-out")
_CODE = """
import sys
from pathlib import Path
from tests.kit.rehearsals import rehearse
rehearse(sys.argv[1], int(sys.argv[2]), recording=Path(sys.argv[3]))
"""


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", _NAMES)
def test_two_processes_write_the_same_bytes(tmp_path: Path, name: str) -> None:
    digests = []
    for seed in (1, 7):
        mine, other = tmp_path / f"{seed}.jsonl.gz", tmp_path / f"{seed}-other.jsonl.gz"
        rehearse(name, seed, recording=mine)
        env = environment(tmp_path) | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", _CODE, name, str(seed), str(other)]
        subprocess.run(command, cwd=ROOT, env=env, check=True, timeout=120)
        assert _digest(mine) == _digest(other)
        digests.append(_digest(mine))
    assert digests[0] != digests[1]


def test_a_recording_is_judged_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl.gz"
    run = rehearse("graceful-poweroff", recording=path)
    registry = load_registry()
    loaded = load(EXPERIMENTS / "graceful-poweroff.yaml", registry)
    again = judge_recording(path, loaded, JudgeOverrides({}, {}, {}))
    assert [(v.name, v.status, v.because) for v in again.result.hypothesis] == [
        (v.name, v.status, v.because) for v in run.result.hypothesis
    ]


def test_a_recording_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl.gz"
    rehearse("power-cut", recording=path)
    done = nodefall("lab", "replay", path, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_times_are_exact(tmp_path: Path) -> None:
    """No interval of a version has a width: nothing was received later than it happened."""
    path = tmp_path / "recording.jsonl.gz"
    timeline = rehearse("graceful-poweroff", recording=path).timeline
    versions = [version for history in timeline.pods.values() for version in history]
    assert versions
    assert all(version.earliest == version.latest == version.t for version in versions)
    assert timeline.blind_windows == build_timeline(read_recording(path)).blind_windows
    run = rehearse("graceful-poweroff")
    run.write(tmp_path)
    assert "SIMULATED" in (tmp_path / "report.html").read_text(encoding="utf-8").upper()
