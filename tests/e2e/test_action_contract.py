"""Every action on the lab: it is proven, it is undone, undo twice is harmless, and the cluster is as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from processes import lab, nodefall, result_of

import chaos.actions
from chaos.model.action import Action, Scope, UndoKind
from chaos.model.catalogue import discover

pytestmark = pytest.mark.lab
ACTIONS: dict[str, Action] = discover(chaos.actions, "ACTION")
# Actions that a lab refuses, and a part of the reason.
# Its hosts have neither memory nor disks of their own, nor a clock of each.
REFUSED = {
    "cancel-shutdown-in-flight": "has systemd 252, which answers 0 and goes down all the same",
    "clock-skew": "the fact clock-skew is not known",
    "disk-pressure": "the fact disk is not known",
    "memory-pressure": "the fact cgroup-version is not known",
    "pid-pressure": "the fact pids is not known",
}
# What must have happened before.
FIRST = {"out-of-service": {"name": "first", "action": "power-cut", "target": "victim"}}
MANIFESTS = Path(__file__).parent / "contract"


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with lab(tmp_path_factory.mktemp("lab"), "--workload", MANIFESTS / "there.yaml") as path:
        yield path


def experiment(directory: Path, action: str) -> Path:
    """One step with the parameters of the action's own example."""
    given = yaml.safe_load(ACTIONS[action].example).get("with", {})
    step = {"name": "do", "action": action, "with": given}
    if ACTIONS[action].scope is Scope.NODE:
        step["target"] = "victim"
    path = directory / "contract.yaml"
    document: dict[str, Any] = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Experiment",
        "metadata": {"name": "contract"},
        "spec": {
            "title": f"the contract of {action}",
            "targets": {"victim": {"nodes": ["worker-2"]}},
            "steadyState": [
                {"assert": "nodes-ready", "with": {"nodes": "all"}},
                *([{"assert": "inhibitor-held", "with": {"node": "victim"}}] if ACTIONS[action].on_host else []),
            ],
            "method": [FIRST[action], step] if action in FIRST else [step],
            "hypothesis": [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "within": "5s"}],
            "recovery": {"within": "3m"},
        },
    }
    if ACTIONS[action].undo_kind is UndoKind.IRREVERSIBLE:
        document["spec"]["allow"] = ["irreversible"]
    if given.get("namespace") == "workload":
        (directory / "held.yaml").write_bytes((MANIFESTS / "held.yaml").read_bytes())
        document["spec"]["workload"] = {"manifests": ["held.yaml"]}
    path.write_text(json.dumps(document))
    path.chmod(0o644)
    return path


@pytest.mark.parametrize("action", [name for name in ACTIONS if name not in REFUSED])
def test_it_is_proven_and_undone_and_nothing_stays(tmp_path: Path, inventory: Path, action: str) -> None:
    done = nodefall("run", experiment(tmp_path, action), "-i", inventory, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = result_of(done)
    step = result["steps"][-1]
    assert step["shown"] == "proven"
    assert not step["weak"], step["because"]
    assert all(undo["proven"] for undo in result["undo"])
    again = nodefall("undo", "last", cwd=tmp_path)
    assert again.returncode == 0
    assert "undo:" not in again.stderr
    # Steady state held again at the end of the run; it holds for the next action's run as well, in any order.
    assert {v["status"] for v in result["recovery"]} == {"held"}


@pytest.mark.parametrize("action", REFUSED)
def test_what_cannot_be_done_yet_is_refused(tmp_path: Path, inventory: Path, action: str) -> None:
    done = nodefall("run", experiment(tmp_path, action), "-i", inventory, cwd=tmp_path)
    assert done.returncode == 4
    assert REFUSED[action] in done.stderr
    assert not (tmp_path / "reports").exists()
