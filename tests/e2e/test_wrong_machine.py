"""Inventories that name another machine: refused by the real process before anything is sent, also with --anyway."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import EXPERIMENTS, lab, nodefall
from tests.kit.wrong_machines import boots, write

pytestmark = pytest.mark.lab
PROGRAMS: dict[str, Any] = {"kind": "command", "on": ["true"], "off": ["true"], "status": ["true"]}
PROGRAMS |= {"isOn": {"exit": [0]}, "isOff": {"exit": [1]}}
POWEROFF = EXPERIMENTS / "graceful-poweroff.yaml"


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with lab(tmp_path_factory.mktemp("lab")) as made:
        yield made


def swap_ssh(hosts: dict[str, Any]) -> None:
    """worker-1 by the control plane's SSH port, with its own BMC."""
    hosts["worker-1"]["port"] = hosts["control-plane"]["port"]


def swap_power(hosts: dict[str, Any]) -> None:
    hosts["worker-1"]["power"], hosts["worker-2"]["power"] = hosts["worker-2"]["power"], hosts["worker-1"]["power"]


def power_of_control_plane(hosts: dict[str, Any]) -> None:
    hosts["worker-1"]["power"] = hosts["control-plane"]["power"]


def one_power(hosts: dict[str, Any]) -> None:
    """Programs that do not report which machine they switch."""
    hosts["worker-1"]["power"] = hosts["worker-2"]["power"] = PROGRAMS


def unknown_host(hosts: dict[str, Any]) -> None:
    hosts["worker-9"] = hosts["worker-2"] | {"node": "worker-9"}


def no_host(hosts: dict[str, Any]) -> None:
    """Its Node has a loopback address: this machine's SSH server would be asked."""
    del hosts["worker-1"]


CASES = [
    (
        swap_ssh,
        "host worker-1 is not the machine of the Node worker-1: the kubelet's client certificate on the host is",
    ),
    (swap_power, "the power control of host worker-1 is not that of worker-1: the machine's system UUID is"),
    pytest.param(power_of_control_plane, "(that of control-plane)", marks=pytest.mark.nightly),
    pytest.param(
        unknown_host,
        "host worker-9 of the inventory: the cluster has no Node worker-9",
        marks=pytest.mark.nightly,
    ),
    pytest.param(
        one_power,
        "the hosts worker-1 and worker-2 of the inventory have the same power control",
        marks=pytest.mark.nightly,
    ),
]


@pytest.mark.parametrize(("change", "message"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_another_machine_is_refused(
    inventory: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    before = boots(inventory)
    changed = write(inventory, tmp_path, change)
    experiment = only_worker_1(tmp_path)
    for command in (("plan",), ("run", "--anyway", "--yes")):
        done = nodefall(*command, experiment, "-i", changed, cwd=tmp_path)
        assert done.returncode == 4, done.stderr
        assert message in done.stderr
        assert "--anyway" not in done.stderr
    assert not list(tmp_path.glob("reports/*/*/plan.json")), "no run has begun"
    assert boots(inventory) == before, "no machine went down"


@pytest.mark.nightly
def test_a_host_outside_of_the_inventory_is_not_guessed(inventory: Path, tmp_path: Path) -> None:
    done = nodefall("plan", only_worker_1(tmp_path), "-i", write(inventory, tmp_path, no_host), cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "worker-1 is not in the inventory, and its Node has only a loopback address" in done.stderr


def test_the_true_inventory_is_planned_with_its_identity(inventory: Path, tmp_path: Path) -> None:
    done = nodefall("plan", only_worker_1(tmp_path), "-i", inventory, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["warnings"] == []
    off = plan["steps"][0]
    values = {check["fact"]: check["value"] for check in off["preconditions"]}
    assert list(values) == ["host-key", "stable-id", "kubelet-user", "power-identity"]
    assert values["host-key"].startswith("ssh-ed25519 SHA256:")
    assert values["kubelet-user"] == "system:node:worker-1"


@pytest.mark.nightly
def test_a_power_control_without_identity_is_a_warning(inventory: Path, tmp_path: Path) -> None:
    def use_programs(hosts: dict[str, Any]) -> None:
        hosts["worker-1"]["power"] = PROGRAMS

    done = nodefall("plan", only_worker_1(tmp_path), "-i", write(inventory, tmp_path, use_programs), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "power-identity: worker-1: nothing shows that its power control (command) is that of this machine" in (
        done.stdout
    )


def only_worker_1(folder: Path) -> Path:
    """The experiment with worker-1 as its target."""
    text = POWEROFF.read_text(encoding="utf-8")
    assert "{role: worker, count: 1, runs: workload}" in text
    text = text.replace("{role: worker, count: 1, runs: workload}", "{nodes: [worker-1]}").replace(
        "[workloads/", f"[{EXPERIMENTS}/workloads/"
    )
    path = folder / "experiment.yaml"
    path.write_text(text, encoding="utf-8")
    return path
