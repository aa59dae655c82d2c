"""A cancelled shutdown that leaves /run/nologin behind: the cancellation is not proven, and undo removes the file."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import WALL, lab, nodefall, result_of, write_experiment

pytestmark = pytest.mark.lab


def step(name: str, **fields: str) -> dict[str, Any]:
    return {"name": name, "action": name, "target": "victim"} | fields


def on_host(inventory: Path, command: str) -> subprocess.CompletedProcess[str]:
    document = json.loads(inventory.read_text(encoding="utf-8"))
    host, defaults = document["hosts"]["worker-1"], document["defaults"]
    options = ["-F", "/dev/null", "-o", f"UserKnownHostsFile={defaults['knownHosts']}", "-o", "BatchMode=yes"]
    login = ["-i", host["identityFile"], "-p", str(host["port"]), f"{host['user']}@{host['address']}"]
    return subprocess.run(["ssh", *options, *login, command], capture_output=True, text=True, check=False, timeout=WALL)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_shutdown_that_is_cancelled(tmp_path: Path, is_restarted: bool) -> None:
    restart = [step("logind-restart", after="schedule-shutdown + 5s")] if is_restarted else []
    spec = {
        "title": "t",
        "targets": {"victim": {"nodes": ["worker-1"]}},
        "steadyState": [{"assert": "nodes-ready", "with": {"nodes": "all"}}],
        "method": [
            step("schedule-shutdown") | {"with": {"in": "2m"}},
            *restart,
            step("cancel-shutdown", after="schedule-shutdown + 15s"),
        ],
        "hypothesis": [
            {"assert": "nodes-ready", "with": {"nodes": "all"}, "after": "cancel-shutdown", "always": {"for": "30s"}}
        ],
    }
    with lab(tmp_path) as inventory:
        made = write_experiment(tmp_path / "cancelled.yaml", spec)
        result = result_of(nodefall("run", made, "-i", inventory, "--yes", "--json", cwd=tmp_path))
        proofs = {found["step"]: (found["proof_status"], found["because"]) for found in result["steps"]}
        left = on_host(inventory, shlex.join(["cat", "/run/nologin"]))
    assert proofs["schedule-shutdown"][0] == "proven"
    status, because = proofs["cancel-shutdown"]
    assert status == ("unproven" if is_restarted else "proven")
    assert ("only root can log in" if is_restarted else "logins are admitted") in because
    assert left.returncode == 1, left.stdout
