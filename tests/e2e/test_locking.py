"""One run at a time on a cluster, from any machine; a run that was paused too long does nothing more."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.kit.elsewhere import nodefall_elsewhere
from tests.kit.processes import WALL, lab, nodefall, start, wait_for, write_experiment

pytestmark = pytest.mark.lab


def experiment(directory: Path) -> Path:
    """Two steps; the second is due after another machine has taken over."""
    ready = {"assert": "nodes-ready", "with": {"nodes": "all"}}
    spec = {
        "title": "two steps",
        "targets": {"victim": {"nodes": ["worker-2"]}},
        "steadyState": [ready],
        "method": [
            {"name": "first", "action": "kubelet-stop", "target": "victim"},
            {"name": "second", "action": "cordon", "target": "victim", "after": "first + 20s"},
        ],
        "hypothesis": [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "always": {"for": "10m"}}],
        "recovery": {"within": "3m"},
    }
    return write_experiment(directory / "twice.yaml", spec)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_run_that_sleeps_through_its_lock_is_undone_by_another_machine_and_does_nothing_more(
    tmp_path: Path,
) -> None:
    twice = experiment(tmp_path)
    with lab(tmp_path, "--speed", "1") as inventory:
        run = start("run", twice, "-i", inventory, "--plain", cwd=tmp_path)
        wait_for(run, "proven: ")

        # Another machine shares neither the lock file nor the reports.
        here = ("-i", inventory, "--reports", tmp_path / "other")
        second = nodefall_elsewhere("run", twice, *here, cwd=tmp_path)
        assert second.returncode == 4, second.stderr
        assert f"/{run.pid}-" in second.stderr
        assert "cluster in use by " in second.stderr
        assert "(run twice-" in second.stderr
        shown = nodefall("status", "-i", inventory, "--json", cwd=tmp_path)
        assert shown.returncode == 2, shown.stderr
        status = json.loads(shown.stdout)
        assert [(row["step"], row["node"]) for row in status["pendingUndo"]] == [("first", "worker-2")]
        name = status["lock"]["run"]

        os.kill(run.pid, signal.SIGSTOP)
        undone = nodefall_elsewhere("undo", name, *here, "--yes", cwd=tmp_path)
        assert undone.returncode == 0, undone.stderr
        assert "waiting up to 30 s for the lock of" in undone.stderr
        assert nodefall("status", "-i", inventory, cwd=tmp_path).stdout == "no run is active on this cluster\n"
        again = nodefall_elsewhere("undo", name, *here, cwd=tmp_path)
        assert again.returncode == 0
        assert "undo:" not in again.stderr

        os.kill(run.pid, signal.SIGCONT)
        output, _ = run.communicate(timeout=WALL)
        assert "the cluster's lock was deleted" in output
        assert "step second" not in output
        assert run.returncode == 2, output
        assert nodefall("undo", "--list", "-i", inventory, cwd=tmp_path).returncode == 0


def test_a_run_is_stopped_from_elsewhere(tmp_path: Path) -> None:
    with lab(tmp_path) as inventory:
        assert nodefall("status", "-i", inventory, cwd=tmp_path).returncode == 0
        run = start("run", experiment(tmp_path), "-i", inventory, "--plain", cwd=tmp_path)
        wait_for(run, "proven: ")
        stopped = nodefall("abort", "-i", inventory, "--reason", "pager went off", "--json", cwd=tmp_path)
        assert stopped.returncode == 0, stopped.stderr
        assert json.loads(stopped.stdout)["pendingUndo"] == []
        output, _ = run.communicate(timeout=WALL)
        assert "asked to stop: pager went off" in output
        assert "undone: kubelet-state is active" in output
        assert run.returncode == 2
        idle = nodefall("abort", "-i", inventory, cwd=tmp_path)
        assert (idle.returncode, idle.stdout) == (0, "no run is active on this cluster\n")
