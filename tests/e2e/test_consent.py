"""The summary and the confirmation before a run on a real cluster."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.processes import EXPERIMENTS, WALL, environment, lab, nodefall

pytestmark = pytest.mark.lab
POWEROFF = EXPERIMENTS / "graceful-poweroff.yaml"


def as_real(inventory: Path) -> Path:
    """The inventory of a lab without ``simulated``."""
    document = json.loads(inventory.read_text())
    document["cluster"]["simulated"] = False
    path = inventory.with_name("real.json")
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


def typed(answer: str, *arguments: str | Path, cwd: Path) -> tuple[int, str]:
    """Run a command on a terminal on which ``answer`` is typed; exit code and output."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "chaos", *map(str, arguments)]
    process = subprocess.Popen(command, cwd=cwd, env=environment(cwd), stdin=theirs, stderr=theirs, stdout=theirs)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    output = b""
    while chunk := _read(ours):
        output += chunk
    os.close(ours)
    return process.wait(WALL), output.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # EIO: the other end is closed
        return b""


def test_a_power_off_is_confirmed_by_name_or_by_option(tmp_path: Path) -> None:
    with lab(tmp_path) as inventory:
        real = as_real(inventory)
        plan = nodefall("plan", POWEROFF, "-i", real, "--seed", "1", "--out", "plan.json", cwd=tmp_path)
        assert plan.returncode == 0, plan.stderr
        refused = nodefall("run", POWEROFF, "-i", real, cwd=tmp_path)
        assert refused.returncode == 4
        assert "and there is no terminal to ask" in refused.stderr
        assert "hint: pass --yes to confirm" in refused.stderr
        code, output = typed("another", "run", POWEROFF, "-i", real, cwd=tmp_path)
        assert code == 4
        assert "will go down. Type the name of the inventory to continue" in output
        assert "not confirmed" in output
        assert not list(tmp_path.glob("reports/*/*/plan.json"))
        done = nodefall("run", "--plan", "plan.json", "-i", real, "--yes", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "step       power-off on worker-" in done.stderr
        again = nodefall("run", "--plan", "plan.json", "-i", real, "--yes", cwd=tmp_path)
        assert again.returncode == 4
        assert "the plan is stale: worker-" in again.stderr
        assert "has booted since" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give an EXPERIMENT or --plan FILE"),
        (("--plan", "none.json"), "none.json: file not found"),
        (("--plan", "bad.json"), "bad.json: invalid plan"),
        (("--plan", "bad.json", str(POWEROFF)), "--plan cannot be combined"),
        (("--plan", "bad.json", "--seed", "3"), "--plan cannot be combined"),
    ],
)
def test_bad_plans(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "bad.json").write_text('{"run": 7}')
    done = nodefall("run", *arguments, "-i", "hosts/lab.yaml", cwd=tmp_path)
    assert done.returncode == 64, done.stderr
    assert message in done.stderr
