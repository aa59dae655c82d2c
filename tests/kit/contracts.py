"""For every action an experiment of one step, with the parameters of its example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

import chaos.faults.actions
import chaos.faults.actions.windows
from chaos.core.action import Action, AnyAction, Scope, UndoKind
from chaos.core.registry import discover
from tests.kit.action_rows import FIRST

ACTIONS: dict[str, AnyAction] = discover(chaos.faults.actions, Action)
MANIFESTS = Path(__file__).parent / "contract"
WINDOWS_VICTIMS = {"winrm": "windows-1", "ssh": "windows-2"}  # two: sshd is up earlier after a boot than WinRM
WINDOWS_FORMS = sorted(  # of actions on the host
    discover(chaos.faults.actions.windows, Action).keys() | {n for n, a in ACTIONS.items() if "windows" in a.systems}
)
SCHEDULE = {"name": "schedule", "action": "schedule-shutdown", "target": "victim"}


def experiment(directory: Path, action: str, recovery: str = "3m", victim: str = "") -> Path:
    """One step with the parameters of the action's example; ``victim`` is a worker by default."""
    given = yaml.safe_load(ACTIONS[action].example).get("with", {})
    step = {"name": "do", "action": action, "with": given}
    if ACTIONS[action].scope is Scope.NODE:
        step["target"] = "victim"
    # A kubelet keeps the condition and its taint for five minutes after the pressure: that node is not for others.
    victim = victim or ("worker-3" if action.endswith("-pressure") else "worker-2")
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


def windows_experiment(
    directory: Path,
    action: str,
    transport: str = "winrm",
    method: list[dict[str, Any]] | None = None,
    recovery: str = "3m",
) -> Path:
    """The same on the Windows node with that transport; ``method`` in place of the usual one."""
    path = experiment(directory, action, recovery)
    document = json.loads(path.read_text())
    spec = document["spec"]
    spec["targets"] = {"victim": {"nodes": [WINDOWS_VICTIMS[transport]]}}
    spec["steadyState"] = [{"assert": "nodes-ready", "with": {"nodes": "all"}}]
    if method is not None:
        spec["method"] = method
    elif action == "cancel-shutdown":
        spec["method"] = [SCHEDULE, {**spec["method"][-1], "after": "schedule + 20s"}]
    path.write_text(json.dumps(document))
    return path


def use_ssh(inventory: dict[str, Any], host: dict[str, Any]) -> None:
    """Change the entry of a Windows node from WinRM to SSH. ``host``: its part of the lab's ready line."""
    entry = inventory["hosts"][host["node"]]
    del entry["transport"], entry["options"]
    entry |= {key: host[key] for key in ("port", "user", "identityFile")} | {"sudo": False}
