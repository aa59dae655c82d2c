"""Runs on machines that are slow, or have failsafe timers: as long as maxDuration, in the way of no other run."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import LAB, WALL, lab, nodefall, result_of, start, verdicts, wait_for, write_experiment

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


START = 6  # seconds


def deployment() -> dict[str, Any]:
    labels, behaviour = {"app": "web"}, {"lab.nodefall.dev/starts-after": str(START)}
    container = {"name": "c", "image": "busybox:1.36", "resources": {"requests": {"cpu": "10m"}}}
    template = {"metadata": {"labels": labels, "annotations": behaviour}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def growing(folder: Path) -> Path:
    """Two more pods are to be available within 3 s; without the baseline and slack that is too soon."""
    (folder / "web.yaml").write_text(json.dumps(deployment()))
    more = {"kind": "deployment", "namespace": "workload", "name": "web", "replicas": 3}
    available = {
        "assert": "workload-available",
        "with": {"namespace": "workload"},
        "after": "grow + 1s",
        "within": "3s",
    }
    spec = {
        "title": "t",
        "workload": {"manifests": ["web.yaml"]},
        "steadyState": [{"assert": "workload-available", "with": {"namespace": "workload"}}],
        "method": [{"name": "grow", "action": "scale", "with": more}],
        "hypothesis": [
            {"name": "strict"} | available,
            {"name": "loose", "timing": "loose"} | available,
            {"name": "baseline", "baseline": "3x"} | available,
        ],
        "recovery": {"within": "5m", "timing": "loose"},
    }
    return write_experiment(folder / "slow.yaml", spec)


def with_slack(inventory: Path, slack: str) -> Path:
    document = json.loads(inventory.read_text())
    document["cluster"]["slack"] = slack
    changed = inventory.with_name("slow-lab.json")
    changed.write_text(json.dumps(document))
    return changed


def test_slow_machines(tmp_path: Path) -> None:
    file = growing(tmp_path)
    with lab(tmp_path) as inventory:
        slow = with_slack(inventory, "4x")
        planned = nodefall("plan", file, "-i", slow, cwd=tmp_path)
        quick = result_of(nodefall("run", file, "-i", inventory, "--json", cwd=tmp_path))
        loose = result_of(nodefall("run", file, "-i", slow, "--json", cwd=tmp_path))
    assert planned.stdout.splitlines()[-3:] == [
        "deadline loose: 3s, times 4 (slack)",
        "deadline baseline: 3s, at least 3 x the slowest start of the workload",
        "deadline of the recovery: 5m, times 4 (slack)",
    ]
    for result, held in ((quick, "violated"), (loose, "held")):
        statuses = {name: verdicts(result)[name]["status"] for name in ("strict", "loose", "baseline")}
        assert statuses == {"strict": "violated", "loose": held, "baseline": "held"}, result
    found = verdicts(loose)
    assert found["loose"]["expected"].endswith("within 12s of grow + 1s (3s, with slack 4)")
    assert f"(3s, with baseline 3 x {START}." in found["baseline"]["expected"]
    assert "slack 4: deadlines with timing: loose are that much longer" in loose["notes"]
    for directory in (tmp_path / "reports" / "slow").iterdir():
        saved = json.loads((directory / "result.json").read_text())
        again = result_of(nodefall("judge", directory, file, "--json", cwd=tmp_path))
        for part in ("hypothesis", "recovery"):
            keys = ("name", "status", "because", "expected", "deadline")
            assert [[v[k] for k in keys] for v in again[part]] == [[v[k] for k in keys] for v in saved[part]]
    assert len(list((tmp_path / "reports" / "slow").iterdir())) == 2
