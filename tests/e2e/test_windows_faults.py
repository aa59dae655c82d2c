"""Faults of services, network and clock on a Windows node of the lab, over WinRM and SSH, from injection to undo."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.app.labs import make_inventory, start_lab
from chaos.core.inventory import Lab
from tests.kit.processes import WALL, nodefall, start, wait_for, write_experiment

pytestmark = pytest.mark.lab

LONG = "60s"  # until a node that is cut off is Unknown: a Ready that is only old would end in the next run
RESTART = {"name": "restart", "action": "kubelet-restart"}
RUNTIME = {"name": "runtime", "action": "runtime-stop", "after": "20s"}
CUT = {"name": "cut", "action": "partition"}
SKEW = {"name": "skew", "action": "clock-skew", "with": {"by": "60s", "direction": "behind"}}


def experiment(path: Path, *steps: dict[str, Any], **more: Any) -> Path:
    spec = {
        "title": "a Windows node",
        "targets": {"victim": {"nodes": ["windows-1"]}},
        "steadyState": [{"assert": "nodes-ready", "with": {"nodes": "all"}}],
        "method": [{"target": "victim"} | step for step in steps],
        "hypothesis": [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "always": {"for": LONG}}],
        "recovery": {"within": "5m"},
    }
    return write_experiment(path, spec | more)


@pytest.fixture
def inventory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    with start_lab(Lab(workers=2, windows_workers=1), seed=1) as lab:
        document = make_inventory(lab.facts).model_dump(mode="json", by_alias=True, exclude_none=True)
        if request.param == "ssh":
            facts = next(host for host in lab.facts["hosts"] if host["os"] == "windows")
            ssh = {key: facts[key] for key in ("port", "user", "identityFile")}
            document["hosts"]["windows-1"] |= {"transport": "ssh", "options": {}} | ssh
        path = tmp_path / "lab.json"
        path.write_text(json.dumps(document))
        yield path


@pytest.mark.parametrize("inventory", ["winrm", "ssh"], indirect=True)
def test_each_fault_is_proven_and_undone(inventory: Path, tmp_path: Path) -> None:
    for name, steps in (("services", (RESTART, RUNTIME)), ("cut", (CUT,)), ("skew", (SKEW,))):
        done = nodefall("run", experiment(tmp_path / f"{name}.yaml", *steps), "-i", inventory, "--plain", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        for step in steps:
            assert f"step {step['name']} on windows-1: proven" in done.stderr, done.stderr
            assert f"step {step['name']} on windows-1: undone" in done.stderr, done.stderr
    assert nodefall("plan", tmp_path / "cut.yaml", "-i", inventory, cwd=tmp_path).returncode == 0, "nothing is left"


@pytest.mark.parametrize("inventory", ["winrm"], indirect=True)
def test_what_a_killed_run_leaves_is_seen_and_undone(inventory: Path, tmp_path: Path) -> None:
    cut = experiment(tmp_path / "cut.yaml", CUT, maxDuration="30m")
    run = start("run", cut, "-i", inventory, "--plain", cwd=tmp_path)
    wait_for(run, "proven: ")
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=WALL)
    planned = nodefall("plan", cut, "-i", inventory, cwd=tmp_path)
    assert planned.returncode == 4, planned.stderr
    assert re.search(r"windows-1 has the firewall rules nodefall-\S+-cut of an earlier run", planned.stderr)
    assert re.search(r"windows-1 still has nodefall-\S+-cut of an earlier run", planned.stderr)
    undone = nodefall("undo", "last", cwd=tmp_path)
    assert undone.returncode == 0, undone.stderr
    assert nodefall("plan", cut, "-i", inventory, cwd=tmp_path).returncode == 0
