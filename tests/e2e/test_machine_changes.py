"""An address that leads to another machine after the plan: nothing is sent there, neither by a step nor by an undo."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import WALL, lab, nodefall, start, wait_for
from tests.kit.proxy import Proxy
from tests.kit.wrong_machines import boots, experiment, write

pytestmark = pytest.mark.lab
STOP = {"name": "stop", "action": "kubelet-stop", "target": "victim"}
CORDON = {"name": "cordon", "action": "cordon", "target": "victim"}
REBOOT = {"name": "power-off", "action": "poweroff", "target": "victim", "after": "cordon + 40s"}


CHANGED_HANDS = "now leads to a different machine: it presents the host key ssh-ed25519 SHA256:"
# What the machines have in common, and by what another one is recognized.
SHARED: list[tuple[list[str], str]] = [
    ([], CHANGED_HANDS),
    (["host-key"], "worker-1 is another machine now: expected stable-id is machine"),
    (["host-key", "machine-id"], "worker-1 is another machine now: expected kubelet-user is system:node:worker-1"),
]


@pytest.mark.parametrize(("shared", "message"), SHARED)
def test_an_undo_sends_nothing_to_another_machine(tmp_path: Path, shared: list[str], message: str) -> None:
    def swap(hosts: dict[str, Any]) -> None:
        hosts["worker-1"]["port"] = hosts["worker-2"]["port"]

    with lab(tmp_path, sharedIdentity=shared) as inventory:
        run = start("run", experiment(tmp_path, STOP), "-i", inventory, "--plain", cwd=tmp_path)
        wait_for(run, "stop on worker-1: proven")
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=WALL)
        wrong = nodefall("undo", "last", "-i", write(inventory, tmp_path, swap), cwd=tmp_path)
        assert wrong.returncode == 3, wrong.stderr
        assert message in wrong.stderr
        right = nodefall("undo", "last", "-i", inventory, cwd=tmp_path)
        assert right.returncode == 0, right.stderr
        boots(inventory)  # every node is Ready


def test_a_machine_that_a_person_accepts_is_undone(tmp_path: Path) -> None:
    """A container that was made again while it was off: the undo ends, says what differs, and how it is settled."""
    off = {"name": "off", "action": "power-cut", "target": "victim"}
    with lab(tmp_path, machineIdPerBoot=True, perBoot=["container-id"]) as inventory:
        run = nodefall("run", experiment(tmp_path, off), "-i", inventory, "--yes", cwd=tmp_path)
        assert run.returncode == 3, run.stderr
        assert "worker-1 is another machine now: expected stable-id is container" in run.stderr
        again = nodefall("undo", "last", "-i", inventory, cwd=tmp_path)
        assert again.returncode == 3, again.stderr
        assert "--accept-machine worker-1" in again.stderr
        next_run = nodefall("run", experiment(tmp_path, CORDON), "-i", inventory, "--yes", cwd=tmp_path)
        assert next_run.returncode == 4, next_run.stderr
        mistaken = nodefall("undo", "last", "-i", inventory, "--accept-machine", "worker-2", cwd=tmp_path)
        assert (mistaken.returncode, "no pending undo there" in mistaken.stderr) == (3, True), mistaken.stderr
        accept = ("undo", "last", "-i", inventory, "--accept-machine", "worker-1")
        unseen = nodefall(*accept, cwd=tmp_path)
        assert (unseen.returncode, "not confirmed" in unseen.stderr) == (3, True), unseen.stderr
        settled = nodefall(*accept, "--yes", cwd=tmp_path)
        assert settled.returncode == 0, settled.stderr
        assert "the machine in the place of worker-1:\n  stable-id: container " in settled.stderr
        (journal,) = tmp_path.glob("reports/*/*/journal.jsonl")
        (record,) = [json.loads(line)["accepted"] for line in journal.read_text().splitlines() if '"accepted"' in line]
        assert record["node"] == "worker-1"
        assert {check["fact"] for check in record["identity"]} == {check["fact"] for check in record["was"]}
        assert nodefall("run", experiment(tmp_path, CORDON), "-i", inventory, "--yes", cwd=tmp_path).returncode == 0


def test_a_machine_of_another_node_is_never_accepted(tmp_path: Path) -> None:
    def swap(hosts: dict[str, Any]) -> None:
        hosts["worker-1"]["port"] = hosts["control-plane"]["port"]

    with lab(tmp_path) as inventory:
        run = start("run", experiment(tmp_path, STOP), "-i", inventory, "--plain", cwd=tmp_path)
        wait_for(run, "stop on worker-1: proven")
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=WALL)
        wrong = write(inventory, tmp_path, swap)
        accepted = nodefall("undo", "last", "-i", wrong, "--accept-machine", "worker-1", "--yes", cwd=tmp_path)
        assert accepted.returncode == 3, accepted.stderr
        assert "cannot accept the machine of worker-1: the kubelet's client certificate" in accepted.stderr
        right = nodefall("undo", "last", "-i", inventory, cwd=tmp_path)
        assert right.returncode == 0, right.stderr


@contextmanager
def two_faced(inventory: Path, folder: Path) -> Iterator[tuple[Path, Proxy]]:
    """An inventory in which worker-1 is behind a proxy whose port is known by the host keys of all machines."""
    document = json.loads(inventory.read_text())
    worker = document["hosts"]["worker-1"]
    proxy = Proxy(("127.0.0.1", worker["port"]))
    known = Path(document["defaults"]["knownHosts"]).read_text()
    keys = "".join(f"[127.0.0.1]:{proxy.port} {line.split(' ', 1)[1]}\n" for line in known.splitlines())
    (folder / "known_hosts").write_text(known + keys)
    document["defaults"]["knownHosts"] = str(folder / "known_hosts")
    worker["port"] = proxy.port
    path = folder / "two_faced.json"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    try:
        yield path, proxy
    finally:
        proxy.close()


@pytest.mark.parametrize(
    ("shared", "message"), [([], CHANGED_HANDS), (["host-key"], "it requires stable-id is machine")]
)
def test_a_step_is_not_done_on_another_machine(tmp_path: Path, shared: list[str], message: str) -> None:
    """worker-1's address changes hands between two steps: the control plane has it when the power-off is due."""
    with (
        lab(tmp_path, speed=5.0, sharedIdentity=shared) as inventory,
        two_faced(inventory, tmp_path) as (changed, proxy),
    ):
        before = boots(inventory)
        run = start("run", experiment(tmp_path, CORDON, REBOOT), "-i", changed, "--plain", cwd=tmp_path)
        wait_for(run, "cordon on worker-1: proven")
        control_plane = json.loads(inventory.read_text())["hosts"]["control-plane"]["port"]
        proxy.redirect(("127.0.0.1", control_plane))
        output, _ = run.communicate(timeout=WALL)
        assert run.returncode == 2, output
        assert "step power-off on worker-1 was not done: it requires" in output
        assert message in output
        assert boots(inventory) == before
