"""Runs that end badly: killed, interrupted, aborted. What they did is undone, at the latest by ``undo``."""

from __future__ import annotations

import json
import os
import signal
import ssl
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from processes import EXPERIMENTS, LAB, WALL, lab, nodefall, start, wait_for

pytestmark = pytest.mark.lab
POWEROFF = EXPERIMENTS / "graceful-poweroff.yaml"


def powers(inventory: Path) -> dict[str, str]:
    """What every node's power control says, asked without nodefall."""
    found = {}
    for name, host in json.loads(inventory.read_text())["hosts"].items():
        power: dict[str, Any] = host["power"]
        passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        passwords.add_password(None, power["url"], power["user"], Path(power["password"]["file"]).read_text().strip())
        opener = urllib.request.build_opener(
            urllib.request.HTTPBasicAuthHandler(passwords),
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=power["caFile"])),
        )
        with opener.open(power["url"], timeout=10) as answer:
            found[name] = json.load(answer)["PowerState"]
    return found


def namespaces(inventory: Path, cwd: Path) -> str:
    """The cluster as plan sees it is not enough: ask nodefall's own undo list and the runs' journals."""
    return nodefall("undo", "--list", cwd=cwd).stdout


def test_after_sigkill_undo_restores_the_lab_and_a_second_undo_finds_nothing(tmp_path: Path) -> None:
    with lab(tmp_path) as inventory:
        run = start("run", POWEROFF, "-i", inventory, "--plain", "--seed", "1", cwd=tmp_path)
        wait_for(run, "was off")
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=WALL)
        assert sorted(powers(inventory).values()) == ["Off", "On", "On", "On"]
        listed = nodefall("undo", "--list", cwd=tmp_path)
        assert listed.returncode == 3
        assert "power-off (poweroff)" in listed.stdout
        undone = nodefall("undo", "last", cwd=tmp_path)
        assert undone.returncode == 0, undone.stderr
        assert set(powers(inventory).values()) == {"On"}
        again = nodefall("undo", "last", cwd=tmp_path)
        assert again.returncode == 0
        assert "nothing is owed" in again.stderr
        assert "undo:" not in again.stderr
        assert namespaces(inventory, tmp_path) == ""
        # The cluster is as it was: the same experiment runs again.
        assert nodefall("run", POWEROFF, "-i", inventory, "--seed", "1", cwd=tmp_path).returncode == 0


def test_after_sigkill_the_labs_of_a_command_wait_for_undo(tmp_path: Path) -> None:
    run = start("run", POWEROFF, "-i", LAB, "--plain", "--seed", "1", cwd=tmp_path)
    wait_for(run, "was off")
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=WALL)
    undone = nodefall("undo", "last", cwd=tmp_path)
    assert undone.returncode == 0, undone.stderr
    assert "power on" in undone.stderr
    assert "nothing is owed" in nodefall("undo", "last", cwd=tmp_path).stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_undoes_first(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with lab(tmp_path) as inventory:
        run = start("run", POWEROFF, "-i", inventory, "--plain", "--seed", "1", cwd=tmp_path)
        wait_for(run, "was off")
        run.send_signal(number)
        run.send_signal(number)
        output, _ = run.communicate(timeout=WALL)
        assert run.returncode == code, output
        assert set(powers(inventory).values()) == {"On"}
        assert nodefall("undo", "--list", cwd=tmp_path).returncode == 0


def test_an_abort_condition_ends_the_run_and_undoes(tmp_path: Path) -> None:
    text = POWEROFF.read_text(encoding="utf-8").replace("not-ready-at-most: 1", "not-ready-at-most: 0")
    workload = str(EXPERIMENTS / "workloads" / "web-db-tiers.yaml")
    experiment = tmp_path / "abort.yaml"
    experiment.write_text(text.replace("workloads/web-db-tiers.yaml", workload))
    done = nodefall("run", experiment, "-i", LAB, "--plain", "--seed", "1", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "aborted: abort condition nodes-ready" in done.stderr
    assert "undone: machine is on" in done.stderr


def test_max_duration_ends_the_run_and_undoes(tmp_path: Path) -> None:
    done = nodefall("run", POWEROFF, "-i", LAB, "--plain", "--seed", "1", "--max-duration", "40s", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "maxDuration" in done.stderr
    assert "undone: machine is on" in done.stderr
