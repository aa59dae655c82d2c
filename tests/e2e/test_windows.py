"""Windows forms of actions and faults on the lab, over WinRM and SSH: proven, undone, harmless when undone twice."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.app.labs import RunningLab, make_inventory, start_lab
from chaos.app.wiring.connect import connect_cluster
from chaos.core.command import HostCommand
from chaos.core.lab_settings import Lab
from chaos.core.windows import system_program
from tests.kit.contracts import SCHEDULE, WINDOWS_VICTIMS, use_ssh, windows_experiment
from tests.kit.processes import WALL, nodefall, result_of, start, wait_for, write_experiment

pytestmark = pytest.mark.lab

ALL = os.environ.get("NODEFALL_SWEEP") == "all"
ACTIONS = (
    *("cancel-shutdown", "hard-reboot", "kernel-crash", "kubelet-stop", "power-cut", "power-on", "poweroff", "reboot"),
    "schedule-shutdown",
)
SMOKE = pytest.param("poweroff", "winrm", marks=pytest.mark.smoke)
FEW = [("cancel-shutdown", "winrm"), ("kernel-crash", "winrm"), ("reboot", "ssh"), SMOKE]
CASES = [(action, transport) for action in ACTIONS for transport in WINDOWS_VICTIMS] if ALL else FEW


@pytest.fixture(scope="module")
def running() -> Iterator[RunningLab]:
    with start_lab(Lab(workers=2, windows_workers=2)) as running:
        yield running


@pytest.fixture(scope="module")
def inventory(running: RunningLab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of the lab, with one of the Windows nodes over SSH."""
    path, name = tmp_path_factory.mktemp("inventory") / "inventory.json", WINDOWS_VICTIMS["ssh"]
    document = running.inventory.model_dump(mode="json", by_alias=True, exclude_none=True)
    use_ssh(document, next(host for host in running.facts["hosts"] if host["node"] == name))
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(("action", "transport"), CASES)
def test_a_windows_form_is_proven_and_undone(tmp_path: Path, inventory: Path, action: str, transport: str) -> None:
    file = windows_experiment(tmp_path, action, transport)
    done = nodefall("run", file, "-i", inventory, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = result_of(done)
    step = result["steps"][-1]
    assert (step["shown"], step["weak"]) == ("proven", False), step["because"]
    assert all(undo["proven"] for undo in result["undo"])
    again = nodefall("undo", "last", cwd=tmp_path)
    assert again.returncode == 0
    assert "no pending undo" in again.stderr
    assert {v["status"] for v in result["recovery"]} == {"held"}


def test_a_cancellation_that_would_come_too_late_is_refused(tmp_path: Path, inventory: Path) -> None:
    cancel = {"name": "cancel", "action": "cancel-shutdown", "target": "victim", "after": "schedule + 60s"}
    file = windows_experiment(tmp_path, "cancel-shutdown", method=[SCHEDULE, cancel])
    done = nodefall("run", file, "-i", inventory, cwd=tmp_path)
    assert done.returncode == 4
    assert "Windows does not cancel a shutdown whose countdown is over" in done.stderr
    assert not list(tmp_path.glob("reports/*/*/plan.json"))


def test_a_shutdown_of_somebody_else_is_left_alone(tmp_path: Path, inventory: Path, running: RunningLab) -> None:
    """The steps are refused beforehand, and the machine still has it afterwards."""
    program = system_program("shutdown")
    with connect_cluster(running.inventory) as connection:
        schedule = HostCommand((program, "/s", "/f", "/t", "100000", "/c", "updates"))
        assert connection.hosts.send(WINDOWS_VICTIMS["winrm"], schedule).exit == 0
        for action in ("reboot", "schedule-shutdown"):
            done = nodefall("run", windows_experiment(tmp_path, action), "-i", inventory, cwd=tmp_path)
            assert done.returncode == 4
            assert "has a shutdown pending (shutdown.exe for" in done.stderr
        assert connection.hosts.send(WINDOWS_VICTIMS["winrm"], HostCommand((program, "/a"))).exit == 0


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
def faulty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    with start_lab(Lab(workers=2, windows_workers=1), seed=1) as lab:
        document = make_inventory(lab.facts).model_dump(mode="json", by_alias=True, exclude_none=True)
        if request.param == "ssh":
            facts = next(host for host in lab.facts["hosts"] if host["os"] == "windows")
            ssh = {key: facts[key] for key in ("port", "user", "identityFile")}
            document["hosts"]["windows-1"] |= {"transport": "ssh", "options": {}} | ssh
        path = tmp_path / "lab.json"
        path.write_text(json.dumps(document))
        yield path


@pytest.mark.parametrize("faulty", ["winrm", "ssh"], indirect=True)
def test_each_fault_is_proven_and_undone(faulty: Path, tmp_path: Path) -> None:
    for name, steps in (("services", (RESTART, RUNTIME)), ("cut", (CUT,)), ("skew", (SKEW,))):
        done = nodefall("run", experiment(tmp_path / f"{name}.yaml", *steps), "-i", faulty, "--plain", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        for step in steps:
            assert f"step {step['name']} on windows-1: proven" in done.stderr, done.stderr
            assert f"step {step['name']} on windows-1: undone" in done.stderr, done.stderr
    assert nodefall("plan", tmp_path / "cut.yaml", "-i", faulty, cwd=tmp_path).returncode == 0, "nothing is left"


@pytest.mark.parametrize("faulty", ["winrm"], indirect=True)
def test_what_a_killed_run_leaves_is_seen_and_undone(faulty: Path, tmp_path: Path) -> None:
    cut = experiment(tmp_path / "cut.yaml", CUT, maxDuration="30m")
    run = start("run", cut, "-i", faulty, "--plain", cwd=tmp_path)
    wait_for(run, "proven: ")
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=WALL)
    planned = nodefall("plan", cut, "-i", faulty, cwd=tmp_path)
    assert planned.returncode == 4, planned.stderr
    assert re.search(r"windows-1 has the firewall rules nodefall-\S+-cut of an earlier run", planned.stderr)
    assert re.search(r"windows-1 still has nodefall-\S+-cut of an earlier run", planned.stderr)
    undone = nodefall("undo", "last", cwd=tmp_path)
    assert undone.returncode == 0, undone.stderr
    assert nodefall("plan", cut, "-i", faulty, cwd=tmp_path).returncode == 0
