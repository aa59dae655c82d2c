"""Reading a file runs nothing that it names: programs are run when a cluster or a host is used, never before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.cli.app import main
from chaos.cluster.client import connect
from chaos.core.errors import NodefallError
from chaos.core.field_types import Secret
from chaos.machines.local import SecretContext, read_secret
from tests.kit.misbehaving import kubeconfig

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "recordings" / "05-power-cut.jsonl.gz"
EXPERIMENT = """
apiVersion: nodefall.dev/v1alpha1
kind: Experiment
metadata: {name: trap}
spec:
  title: A step that runs a program
  targets: {victim: {count: 1}}
  allow: [custom]
  steadyState: [{assert: nodes-ready, with: {nodes: all}}]
  method:
    - {name: power-off, action: command, target: victim, with: {inject: [touch, MARK], undo: [touch, MARK]}}
  hypothesis:
    - name: it is off
      assert: node-condition
      with: {node: victim, type: Ready, status: Unknown}
      after: power-off
      within: 5s
"""


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """What every program of the files creates."""
    return tmp_path / "ran"


@pytest.fixture
def inventory(tmp_path: Path, trap: Path) -> Path:
    touch = ["touch", str(trap)]
    exec_plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": touch[0], "args": touch[1:]}
    exec_plugin["interactiveMode"] = "Never"
    redfish = {
        "kind": "redfish",
        "url": "https://bmc/redfish/v1/Systems/1",
        "user": "u",
        "password": {"command": touch},
    }
    programs = {
        "kind": "command",
        "on": touch,
        "off": touch,
        "status": touch,
        "isOn": {"exit": [0]},
        "isOff": {"exit": [1]},
    }
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "trap"},
        "cluster": {"kubeconfig": str(kubeconfig(tmp_path, "https://127.0.0.1:1", {"exec": exec_plugin}))},
        "prometheus": {"url": "https://prometheus.example", "credentials": {"command": touch}},
        "hosts": {"a": {"address": "10.0.0.1", "power": redfish}, "b": {"address": "10.0.0.2", "power": programs}},
    }
    path = tmp_path / "inventory.json"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


def test_validate_runs_nothing(inventory: Path, trap: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = tmp_path / "trap.yaml"
    experiment.write_text(EXPERIMENT.replace("MARK", str(trap)))
    code = main(["validate", str(inventory), str(experiment)])
    assert (code, trap.exists()) == (0, False), capsys.readouterr().err


def test_judge_runs_nothing(trap: Path, tmp_path: Path) -> None:
    experiment = tmp_path / "trap.yaml"
    experiment.write_text(EXPERIMENT.replace("MARK", str(trap)))
    code = main(["judge", str(RECORDING), str(experiment), "--map", "power-off=power-cut"])
    assert (code in (0, 1, 2), trap.exists()) == (True, False)


def test_the_trap_works(inventory: Path, trap: Path, tmp_path: Path) -> None:
    """The programs are run where they are used: the two tests above could fail."""
    document = json.loads(inventory.read_text())
    command = document["hosts"]["a"]["power"]["password"]["command"]
    with pytest.raises(NodefallError):
        read_secret(Secret(command=command), SecretContext({}, tmp_path, tmp_path))  # it prints no password
    assert trap.exists()
    trap.unlink()
    with pytest.raises(NodefallError):
        connect(document["cluster"]["kubeconfig"]).request("GET", "/version")
    assert trap.exists()
