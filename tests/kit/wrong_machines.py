"""Inventories that lead to other machines than they name, and what happened to the machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from chaos.cluster.client import connect


def write(inventory: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of the inventory with changed hosts."""
    document = json.loads(inventory.read_text())
    change(document["hosts"])
    changed = folder / "changed.json"
    changed.write_text(json.dumps(document))
    changed.chmod(0o600)
    return changed


def boots(inventory: Path) -> dict[str, str]:
    """The boot of each machine, as reported by its kubelet; all nodes are Ready."""
    kube = connect(json.loads(inventory.read_text())["cluster"]["kubeconfig"], None)
    nodes = msgspec.json.decode(kube.request("GET", "/api/v1/nodes").body)["items"]
    ready = {"type": "Ready", "status": "True"}.items()
    assert all(any(ready <= condition.items() for condition in node["status"]["conditions"]) for node in nodes)
    return {node["metadata"]["name"]: node["status"]["nodeInfo"]["bootID"] for node in nodes}


def experiment(folder: Path, *method: dict[str, Any]) -> Path:
    """The target ``victim`` is worker-1, and every node is Ready in the end."""
    ready = {"assert": "nodes-ready", "with": {"nodes": "all"}}
    spec = {"title": "t", "targets": {"victim": {"nodes": ["worker-1"]}}, "steadyState": [ready], "method": method}
    spec |= {"hypothesis": [ready | {"within": "200s"}]}
    path = folder / "experiment.yaml"
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "changes"}}
    path.write_text(json.dumps(head | {"spec": spec}))
    return path
