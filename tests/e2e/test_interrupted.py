"""Runs that are killed, interrupted or aborted: their steps are undone, at the latest by ``undo``."""

from __future__ import annotations

import json
import os
import shlex
import signal
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import EXPERIMENTS, LAB, WALL, environment, lab, nodefall, start, until_undone, wait_for

pytestmark = pytest.mark.lab
POWEROFF = EXPERIMENTS / "graceful-poweroff.yaml"


def powers(inventory: Path) -> dict[str, str]:
    """The power state of every node, read without nodefall."""
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
    """The pending undos of all runs."""
    return nodefall("undo", "--list", cwd=cwd).stdout


@pytest.mark.smoke  # a death
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
        assert "no pending undo" in again.stderr
        assert "undo:" not in again.stderr
        assert namespaces(inventory, tmp_path) == ""
        # The cluster is restored: the same experiment runs again.
        assert nodefall("run", POWEROFF, "-i", inventory, "--seed", "1", cwd=tmp_path).returncode == 0


@pytest.mark.nightly
def test_after_sigkill_the_labs_of_a_command_wait_for_undo(tmp_path: Path) -> None:
    run = start("run", POWEROFF, "-i", LAB, "--plain", "--seed", "1", cwd=tmp_path)
    wait_for(run, "was off")
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=WALL)
    undone = nodefall("undo", "last", cwd=tmp_path)
    assert undone.returncode == 0, undone.stderr
    assert "power on" in undone.stderr
    assert "no pending undo" in nodefall("undo", "last", cwd=tmp_path).stderr


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.nightly)]
)
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


def test_what_was_decided_before_an_interruption_stays_decided(tmp_path: Path) -> None:
    run = start("run", POWEROFF, "-i", LAB, "--plain", "--seed", "1", cwd=tmp_path)
    wait_for(run, "held: every pod is terminated")
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=WALL)
    assert run.returncode == 130, output
    result = json.loads(next(tmp_path.glob("reports/*/*/result.json")).read_text())
    announced, ended, started = result["hypothesis"]
    assert (announced["status"], ended["status"]) == ("held", "held")
    assert {verdict["because"] for verdict in (started, *result["recovery"])} == {
        "not judged: the run was interrupted first"
    }
    assert output.count("not judged: the run was interrupted first") == 1
    judged = nodefall("judge", *tmp_path.glob("reports/*/*/recording.jsonl.gz"), POWEROFF, "--json", cwd=tmp_path)
    again = json.loads(judged.stdout)
    assert [verdict["status"] for verdict in again["hypothesis"]] == ["held", "held", "inconclusive"]
    assert judged.returncode == 2


def test_an_abort_condition_ends_the_run_and_undoes(tmp_path: Path) -> None:
    text = POWEROFF.read_text(encoding="utf-8").replace("not-ready-at-most: 1", "not-ready-at-most: 0")
    workload = str(EXPERIMENTS / "workloads" / "web-db-tiers.yaml")
    experiment = tmp_path / "abort.yaml"
    experiment.write_text(text.replace("workloads/web-db-tiers.yaml", workload))
    done = nodefall("run", experiment, "-i", LAB, "--plain", "--seed", "1", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "aborted: abort condition nodes-ready" in done.stdout
    assert "undone: the machine is on" in done.stderr
    # The goal is 2 s: benchmarks/bench_abort.py
    assert 0 <= until_undone(next(tmp_path.glob("reports/*/*/recording.jsonl.gz"))) < 5


@pytest.mark.nightly
def test_max_duration_ends_the_run_and_undoes(tmp_path: Path) -> None:
    done = nodefall("run", POWEROFF, "-i", LAB, "--plain", "--seed", "1", "--max-duration", "40s", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "maxDuration" in done.stderr
    assert "undone: the machine is on" in done.stderr


@pytest.mark.nightly
def test_a_killed_lab_leaves_a_pending_undo_and_no_traceback(tmp_path: Path) -> None:
    run = start("run", POWEROFF, "-i", LAB, "--plain", "--seed", "1", cwd=tmp_path)
    wait_for(run, "proven: worker")
    info = json.loads(next(tmp_path.glob("reports/*/*/run.json")).read_text())
    os.kill(info["lab_pid"], signal.SIGKILL)
    output, _ = run.communicate(timeout=WALL)
    assert run.returncode == 3, output
    assert "pending undo: power-off on worker" in output
    assert "Traceback" not in output
    undone = nodefall("undo", "last", cwd=tmp_path)
    assert undone.returncode == 0
    assert "no longer exists" in undone.stderr


@pytest.mark.nightly
def test_other_commands_during_a_run(tmp_path: Path) -> None:
    """A second run, and an undo of the active run, are refused; a closed pipe and late signals do not stop the undo.

    The announcement is undone although the node is still Ready when the undo begins.
    """
    with lab(tmp_path, speed=8) as inventory:  # slow, so that the run is still active when the others are refused
        experiment = EXPERIMENTS / "cancelled-shutdown.yaml"
        run = start("run", experiment, "-i", inventory, "--plain", "--seed", "1", cwd=tmp_path)
        wait_for(run, "applying the workload")
        second = nodefall("run", experiment, "-i", inventory, "--json", cwd=tmp_path)
        assert second.returncode == 4
        assert "cluster in use" in json.loads(second.stdout)["error"]["message"]
        undo = nodefall("undo", "last", cwd=tmp_path)
        assert undo.returncode == 3
        assert "still going on" in undo.stderr
        wait_for(run, "step announce on")
        run.send_signal(signal.SIGINT)
        wait_for(run, "phase: roll back")
        run.send_signal(signal.SIGTERM)
        assert run.stdout is not None
        run.stdout.close()
        assert run.wait(WALL) == 130
        assert nodefall("undo", "--list", cwd=tmp_path).returncode == 0
        again = nodefall("run", EXPERIMENTS / "cordon.yaml", "-i", inventory, "--seed", "1", cwd=tmp_path)
        assert again.returncode == 0, again.stderr


def test_a_power_off_needs_a_power_control(tmp_path: Path) -> None:
    """A power control that is unreachable, or that of another machine, is detected before the machine is off."""
    with lab(tmp_path) as inventory:
        document = json.loads(inventory.read_text())
        for host in document["hosts"].values():
            host["power"]["url"] = "https://127.0.0.1:1/redfish/v1/Systems/1"
        (tmp_path / "dead.json").write_text(json.dumps(document))
        done = nodefall("run", POWEROFF, "-i", "dead.json", "--seed", "1", cwd=tmp_path)
        assert done.returncode == 4, done.stderr
        assert "cannot be reached" in done.stderr
        assert not list(tmp_path.glob("reports/*/*/plan.json"))


def test_a_run_whose_disk_is_full_is_undone_and_not_held(tmp_path: Path) -> None:
    """Files are limited to 16 KiB: enough for the plan, not for the recording."""
    arguments = ["run", str(EXPERIMENTS / "cancelled-shutdown.yaml"), "-i", str(LAB), "--seed", "1", "--plain"]
    command = shlex.join([sys.executable, "-m", "chaos", *arguments])
    # The lab inherits the limit, but writes no file of that size.
    limited = ["bash", "-c", f"ulimit -f 16; exec {command}"]
    done = subprocess.run(
        limited, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=WALL, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "the recording is incomplete" in done.stdout
    assert "Traceback" not in done.stderr
    assert nodefall("undo", "--list", cwd=tmp_path).returncode == 0


LATE = """apiVersion: nodefall.dev/v1alpha1
kind: Experiment
metadata: {name: late}
spec:
  title: A shutdown that is scheduled late
  targets: {victim: {role: worker}}
  steadyState: [{assert: nodes-ready, with: {nodes: all}}]
  method:
    - {name: schedule, action: schedule-shutdown, target: victim, with: {in: 60s}, after: 70s}
  hypothesis:
    - {assert: node-condition, with: {node: victim, type: Ready, status: "True"}, after: schedule, always: {for: 70s}}
"""


@pytest.mark.nightly
def test_the_failsafe_timer_is_armed_when_the_step_is_due(tmp_path: Path) -> None:
    """Armed any earlier, it would elapse before the shutdown is scheduled, and the node would power off."""
    (tmp_path / "late.yaml").write_text(LATE)
    done = nodefall("run", "late.yaml", "-i", LAB, "--seed", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
