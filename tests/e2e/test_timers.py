"""Failsafe timers on hosts: as long as maxDuration, in the way of no other run, removed by undo."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import LAB, WALL, lab, nodefall, start, wait_for, write_experiment

pytestmark = pytest.mark.lab


def experiment(directory: Path, *steps: dict[str, Any]) -> Path:
    spec = {
        "title": "timers",
        "targets": {"victim": {"nodes": ["worker-2"]}},
        "steadyState": [{"assert": "nodes-ready", "with": {"nodes": "all"}}],
        "method": [{"target": "victim"} | step for step in steps],
        "hypothesis": [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "always": {"for": "90s"}}],
        "recovery": {"within": "3m"},
    }
    return write_experiment(directory / "timers.yaml", spec)


def test_a_timer_of_a_killed_run_keeps_others_away_until_undo(tmp_path: Path) -> None:
    later = experiment(tmp_path, {"name": "later", "action": "schedule-shutdown", "with": {"in": "30m"}})
    with lab(tmp_path) as inventory:
        run = start("run", later, "-i", inventory, "--plain", cwd=tmp_path)
        wait_for(run, "proven: ")
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=WALL)
        refused = nodefall("run", later, "-i", inventory, cwd=tmp_path)
        assert refused.returncode == 4, refused.stderr
        assert "has a pending undo: later on worker-2" in refused.stderr
        planned = nodefall("plan", later, "-i", inventory, cwd=tmp_path)
        assert planned.returncode == 4, planned.stderr
        assert "worker-2 still has nodefall-timers-" in planned.stderr
        assert nodefall("undo", "last", cwd=tmp_path).returncode == 0
        assert nodefall("plan", later, "-i", inventory, cwd=tmp_path).returncode == 0


def test_timers_last_as_long_as_max_duration(tmp_path: Path) -> None:
    """A timer with the experiment's maxDuration would restart the kubelet during a run with a longer one."""
    stop = experiment(tmp_path, {"name": "stop", "action": "kubelet-stop"})
    done = nodefall("run", stop, "-i", LAB, "--plain", "--max-duration", "30m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    match = re.search(r"fires in (\d+) s", done.stderr)
    assert match, done.stderr
    assert 1700 < int(match[1]) <= 1800


def test_two_steps_on_one_node_are_both_undone(tmp_path: Path) -> None:
    """A kubelet does not start without its runtime, and a node is not Ready without either."""
    stop = {"name": "stop", "action": "kubelet-stop", "after": "90s"}
    both = experiment(tmp_path, {"name": "runtime", "action": "runtime-stop"}, stop)
    done = nodefall("run", both, "-i", LAB, "--plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "still pending" not in done.stderr
