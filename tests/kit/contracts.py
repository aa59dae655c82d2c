"""For every action an experiment of one step, with the parameters of its example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

import chaos.actions
from chaos.model.action import AnyAction, Scope, UndoKind
from chaos.model.registry import discover

ACTIONS: dict[str, AnyAction] = discover(chaos.actions, "ACTION")
# Actions that a lab refuses, and a part of the reason.
# The lab's hosts share one clock.
REFUSED = {
    "cancel-shutdown-in-flight": "has systemd 252, which answers 0 and still goes down",
    "clock-skew": "the fact clock-skew is not known",
}
# What must have happened before.
_CUT = {"name": "first", "action": "power-cut", "target": "victim"}
FIRST = {"out-of-service": _CUT, "power-on": _CUT}
MANIFESTS = Path(__file__).parent / "contract"


def experiment(directory: Path, action: str, recovery: str = "3m") -> Path:
    """One step with the parameters of the action's example."""
    given = yaml.safe_load(ACTIONS[action].example).get("with", {})
    step = {"name": "do", "action": action, "with": given}
    if ACTIONS[action].scope is Scope.NODE:
        step["target"] = "victim"
    # A kubelet keeps the condition and its taint for five minutes after the pressure: that node is not for others.
    victim = "worker-3" if action.endswith("-pressure") else "worker-2"
    path = directory / "contract.yaml"
    document: dict[str, Any] = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Experiment",
        "metadata": {"name": "contract"},
        "spec": {
            "title": f"the contract of {action}",
            "targets": {"victim": {"nodes": [victim]}},
            "steadyState": [
                {"assert": "nodes-ready", "with": {"nodes": "all"}},
                *([{"assert": "inhibitor-held", "with": {"node": "victim"}}] if ACTIONS[action].on_host else []),
            ],
            "method": [FIRST[action], step] if action in FIRST else [step],
            "hypothesis": [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "within": "5s"}],
            "recovery": {"within": recovery},
        },
    }
    irreversible = ["irreversible"] if ACTIONS[action].undo_kind is UndoKind.IRREVERSIBLE else []
    document["spec"]["allow"] = [*irreversible, *filter(None, [ACTIONS[action].allowance])]
    if given.get("namespace") == "workload":
        (directory / "held.yaml").write_bytes((MANIFESTS / "held.yaml").read_bytes())
        document["spec"]["workload"] = {"manifests": ["held.yaml"]}
    path.write_text(json.dumps(document))
    path.chmod(0o644)
    return path
