"""Runs on the lab, one for each way a run ends: stored ones, and how each was made."""

from __future__ import annotations

import getpass
import gzip
import socket
from pathlib import Path

from chaos.core.result import RunResult
from chaos.core.store import run_directory
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.timeline import Timeline
from tests.kit.experiment_runs import run

Made = tuple[RunResult, Timeline]
FOLDER = Path(__file__).parents[1] / "recordings" / "reported"
# Experiment, and what the lab does wrong.
SCENES: dict[str, tuple[str, tuple[str, ...]]] = {
    "held": ("graceful-poweroff", ()),
    "violated": ("graceful-poweroff", ("disruption-target-missing",)),
    "inconclusive": ("critical-pods-last", ("pod-ended-while-running",)),
    "aborted": ("graceful-poweroff", ("heartbeats-ignored",)),
}
_SOMEBODY = "ann@laptop"


def load(name: str) -> Made:
    """Result and timeline of a stored run."""
    timeline = build_timeline(read_recording(FOLDER / name / run_directory.RECORDING))
    return run_directory.load_result(FOLDER / name), timeline


def record(name: str, folder: Path) -> None:
    """Run the experiment on its lab in ``folder``, and store the run under ``name``."""
    experiment, breakages = SCENES[name]
    run(experiment, folder, breakages)
    (made,) = (folder / "reports" / experiment).iterdir()
    target = FOLDER / name
    target.mkdir(parents=True, exist_ok=True)
    (target / run_directory.RESULT).write_bytes(_impersonal((made / run_directory.RESULT).read_bytes()))
    recording = gzip.decompress((made / run_directory.RECORDING).read_bytes())
    (target / run_directory.RECORDING).write_bytes(gzip.compress(_impersonal(recording), mtime=0))


def _impersonal(content: bytes) -> bytes:
    """Without the name of whoever ran it, and that of the machine."""
    return content.replace(f"{getpass.getuser()}@{socket.gethostname()}".encode(), _SOMEBODY.encode())
