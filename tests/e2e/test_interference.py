"""Someone else changes a machine during a run: noticed at once, named, never undone, and inconclusive.

Others are the real kubectl and the real ssh.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.kubectl_lab import Kubectl
from tests.kit.processes import WALL, lab, nodefall, result_of, start, wait_for, write_experiment

pytestmark = pytest.mark.lab
UNKNOWN = " (who did it is unknown)"


def experiment(folder: Path, **step: str) -> Path:
    """worker-1 is cordoned; what is asked soon, and what is asked for 200 s."""
    taint = {"node": "victim", "key": "node.kubernetes.io/unschedulable"}
    spec = {
        "title": "t",
        "targets": {"victim": {"nodes": ["worker-1"]}},
        "steadyState": [{"assert": "nodes-ready", "with": {"nodes": "all"}}],
        "method": [{"name": "cordon", "action": "cordon", "target": "victim"} | step],
        "hypothesis": [
            {"name": "soon", "assert": "node-taint", "with": taint, "within": "10s"},
            {"name": "long", "assert": "nodes-ready", "with": {"not-ready-at-most": 3}, "always": {"for": "200s"}},
        ],
    }
    return write_experiment(folder / "foreign.yaml", spec)


def cordon_another(kubectl: Kubectl, _inventory: dict[str, Any]) -> None:
    kubectl("cordon", "worker-2")


def taint_the_target(kubectl: Kubectl, _inventory: dict[str, Any]) -> None:
    kubectl("taint", "node", "worker-1", "example.com/broken=yes:NoSchedule")


def delete_the_target(kubectl: Kubectl, _inventory: dict[str, Any]) -> None:
    kubectl("delete", "node", "worker-1", "--wait=false")


def reboot_the_target(_kubectl: Kubectl, inventory: dict[str, Any]) -> None:
    host, defaults = inventory["hosts"]["worker-1"], inventory["defaults"]
    options = ["-o", f"UserKnownHostsFile={defaults['knownHosts']}", "-o", "BatchMode=yes", "-F", "/dev/null"]
    login = ["-i", host["identityFile"], "-p", str(host["port"]), f"{host['user']}@{host['address']}"]
    subprocess.run(["ssh", *options, *login, "sudo", "systemctl", "reboot"], check=False, timeout=WALL)


ROWS: list[tuple[Callable[[Kubectl, dict[str, Any]], None], str, str]] = [
    (cordon_another, "worker-2 was cordoned by kubectl (field manager)", "kubectl (field manager)"),
    (
        taint_the_target,
        "worker-1 was tainted example.com/broken:NoSchedule by kubectl-taint (field manager)",
        "kubectl-taint (field manager)",
    ),
    (delete_the_target, f"worker-1 was deleted{UNKNOWN}", "unknown"),
    (reboot_the_target, f"worker-1 is being shut down{UNKNOWN}", "unknown"),
]


@pytest.mark.parametrize(("interfere", "text", "by"), ROWS, ids=[row[0].__name__ for row in ROWS])
def test_it_is_noticed_and_named(
    tmp_path: Path, interfere: Callable[[Kubectl, dict[str, Any]], None], text: str, by: str
) -> None:
    if interfere is reboot_the_target and not shutil.which("ssh"):
        pytest.skip("there is no ssh client")
    path = experiment(tmp_path)
    with lab(tmp_path, speed=5.0) as inventory:
        document = json.loads(inventory.read_text())
        kubectl = Kubectl(document["cluster"]["kubeconfig"], tmp_path)
        run = start("run", path, "-i", inventory, "--plain", cwd=tmp_path)
        wait_for(run, "held: soon")
        interfere(kubectl, document)
        before = wait_for(run, f"foreign fault: {text}")
        assert "undo" not in "".join(before), "reported at once"
        output, _ = run.communicate(timeout=WALL)
        nodes = {item["metadata"]["name"]: item for item in kubectl.json("get", "nodes")["items"]}
    (directory,) = (tmp_path / "reports" / "foreign").iterdir()
    result = json.loads((directory / "result.json").read_text())
    assert result["foreign_faults"][0]["text"] == text
    assert result["foreign_faults"][0]["by"] == by
    assert [(v["name"], v["status"]) for v in result["hypothesis"]] == [("soon", "held"), ("long", "inconclusive")]
    assert f"foreign fault: {text} at +" in result["hypothesis"][1]["because"]
    assert any(note.startswith(f"foreign fault: {text}") for note in result["notes"])
    assert text in (directory / "report.html").read_text()
    assert text in (directory / "report.md").read_text()
    assert run.returncode in (2, 3), output  # without its Node, the cordon cannot be undone
    assert ("worker-1" in nodes) == (interfere is not delete_the_target)
    if interfere is cordon_another:
        assert nodes["worker-2"]["spec"]["unschedulable"] is True, "not undone"
        assert "unschedulable" not in nodes["worker-1"]["spec"]
    if interfere is taint_the_target:
        assert [t["key"] for t in nodes["worker-1"]["spec"]["taints"]] == ["example.com/broken"], "not undone"
    again = result_of(nodefall("judge", directory, path, "--json", cwd=tmp_path))
    assert again["foreign_faults"] == result["foreign_faults"]
    assert [(v["name"], v["status"], v["because"]) for v in again["hypothesis"]] == [
        (v["name"], v["status"], v["because"]) for v in result["hypothesis"]
    ]


@pytest.mark.nightly
def test_a_cordon_of_others_that_came_before_ours_stays(tmp_path: Path) -> None:
    """Planned as not cordoned, then cordoned by someone else, so that the step changes nothing: nor does its undo."""
    path = experiment(tmp_path, after="30s")
    with lab(tmp_path, speed=5.0) as inventory:
        kubectl = Kubectl(json.loads(inventory.read_text())["cluster"]["kubeconfig"], tmp_path)
        run = start("run", path, "-i", inventory, "--plain", cwd=tmp_path)
        wait_for(run, "phase: inject")
        kubectl("cordon", "worker-1")
        output, _ = run.communicate(timeout=WALL)
        assert kubectl.json("get", "node", "worker-1")["spec"]["unschedulable"] is True, output
    assert run.returncode == 2, output
    assert "foreign fault: worker-1 was cordoned by kubectl (field manager) at -" in output
    assert "cordon on worker-1: undone: cordoned-by-nodefall is False" in output
