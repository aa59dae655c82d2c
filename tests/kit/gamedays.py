"""Game days for tests: short experiments without a workload, and what a day has done to a cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from chaos.app.day.store import DayStore, existing
from chaos.cluster.client import connect
from chaos.gameday.transitions import halt
from tests.kit.kubectl_lab import Kubectl
from tests.kit.processes import WALL, nodefall, start, wait_for, write_experiment

TAINT = {"node": "victim", "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}

READY = {"node": "victim", "type": "Ready", "status": "True"}
AWAITED = {"node": "victim", "key": "tests/awaited"}


def write_cordon(path: Path, lasts: str = "40s", awaits: bool = False) -> Path:
    """An experiment that cordons a worker for this long, which holds. ``awaits``: only after :func:`let_go_on`."""
    steady: list[dict[str, Any]] = [{"assert": "nodes-ready", "with": {"nodes": "all"}}]
    steady += [{"assert": "node-taint", "with": AWAITED}] if awaits else []
    return write_experiment(
        path,
        {
            "title": "A cordoned node is tainted",
            "targets": {"victim": {"role": "worker"}},
            "steadyState": steady,
            "method": [{"name": "cordon", "action": "cordon", "target": "victim"}],
            "hypothesis": [
                {"assert": "node-taint", "with": TAINT, "after": "cordon", "within": "5s"},
                {"assert": "node-condition", "with": READY, "after": "cordon", "always": {"for": lasts}},
            ],
        },
    )


def let_go_on(inventory: Path, cwd: Path) -> None:
    """Make the steady state hold that a day ``awaits``."""
    kubectl = Kubectl(json.loads(inventory.read_text())["cluster"]["kubeconfig"], cwd)
    kubectl("taint", "nodes", "--all", f"{AWAITED['key']}=true:PreferNoSchedule")


def write_day(folder: Path, names: list[str], lasts: str = "40s", awaits: bool = False, **spec: Any) -> Path:
    """A game day of such experiments, one entry each; ``spec``: other keys of it."""
    entries = [{"experiment": write_cordon(folder / f"{name}.yaml", lasts, awaits).name} for name in names]
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "GameDay", "metadata": {"name": "days"}}
    shared = {"title": "Days", "owner": "tests", "pause": {"atLeast": "5s", "recovery": "5m"}}
    path = folder / "day.yaml"
    path.write_text(json.dumps(head | {"spec": shared | {"entries": entries} | spec}))
    path.chmod(0o644)
    return path


def run_day(inventory: Path, cwd: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return nodefall("gameday", "run", "day.yaml", "-i", inventory, "--plain", *options, cwd=cwd)


def start_day(inventory: Path, cwd: Path, *options: str) -> subprocess.Popen[str]:
    return start("gameday", "run", "day.yaml", "-i", inventory, "--plain", *options, cwd=cwd)


def kill_day_at(text: str, inventory: Path, cwd: Path) -> None:
    """Run the day and kill it when it has printed ``text``."""
    process = start_day(inventory, cwd)
    wait_for(process, text)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=WALL)


def kill_day_later(inventory: Path, cwd: Path, after: str, lines: int, seconds: float) -> str:
    """Run the day and kill it: ``lines`` lines after one with the text ``after``, and some ``seconds`` later.

    The last line that it had printed; "" if it ended before.
    """
    process = start_day(inventory, cwd)
    assert process.stdout is not None
    left = None if after else lines
    for line in process.stdout:
        if left is None and after in line:
            left = lines
        elif left:
            left -= 1
        if left == 0:
            time.sleep(seconds)
            process.kill()
            process.communicate(timeout=WALL)
            return line.strip()
    process.wait(WALL)
    return ""


class Halter:
    """Halts the day of a lab at once, without the second or two that a process takes to start."""

    def __init__(self, inventory: Path) -> None:
        document = json.loads(inventory.read_text())
        self._kube = connect(document["cluster"]["kubeconfig"])
        self._store = DayStore(self._kube, "kube-system", "days", time.time)
        self._store.read()

    def halt(self, reason: str) -> None:
        self._store.update(existing(lambda state: halt(state, "ada", reason, time.time())))
        self._kube.close()


def day_state(inventory: Path, cwd: Path) -> dict[str, Any]:
    done = nodefall("gameday", "status", "days", "-i", inventory, "--json", cwd=cwd)
    (day,) = json.loads(done.stdout)["days"]
    found: dict[str, Any] = day
    return found


def verdicts_of(state: dict[str, Any]) -> dict[str, str]:
    """Verdict or status by entry."""
    return {run["key"]["entry"]: run.get("verdict") or run.get("status", "pending") for run in state["runs"]}


def faults(cwd: Path) -> dict[str, int]:
    """How often the fault of each experiment may have been injected, by the journals of all runs."""
    found: dict[str, int] = {}
    for run in sorted(cwd.glob("*reports/*/*/run.json")):
        name, journal = run.parent.parent.name, run.parent / "journal.jsonl"
        lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
        steps = {json.loads(line).get("intent", {}).get("step", "workload") for line in lines}
        found[name] = found.get(name, 0) + bool(steps - {"workload"})
    return found


def left_behind(inventory: Path, cwd: Path) -> list[str]:
    """What a day must not leave behind on a cluster, as kubectl shows it."""
    kubectl = Kubectl(json.loads(inventory.read_text())["cluster"]["kubeconfig"], cwd)
    nodes = kubectl.json("get", "nodes")["items"]
    names = kubectl("get", "namespaces,leases,configmaps", "-A", "-o", "name").split()
    marked = [node["metadata"]["name"] for node in nodes if "nodefall" in str(node["metadata"].get("annotations"))]
    cordoned = [node["metadata"]["name"] for node in nodes if node["spec"].get("unschedulable")]
    state = "configmap/nodefall-gameday-days"  # stays, as the record of the day
    return [*marked, *cordoned, *(name for name in names if "nodefall" in name and name != state)]
