"""A container that gets another address at its start, reached by ssh: a stand-in for docker, and real servers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaos.app.wiring import connect
from chaos.core.command import Delivery, HostCommand, PowerCommand, PowerVerb
from chaos.core.errors import Refused, Unreachable
from chaos.core.inventory import Inventory
from chaos.core.ports import Response
from chaos.machines.pool import Hosts
from tests.kit.command_standins import StandIns
from tests.kit.fakes import FakeClock, FakeKube
from tests.kit.sshd import SSHD, USER, Server, keygen, public, serving

BEFORE, AFTER = "127.0.0.2", "127.0.0.3"
WHERE = HostCommand(("sh", "-c", "echo $SSH_CONNECTION"), sudo=False)
ON = PowerCommand(PowerVerb.ON)
_INSPECT = 'docker inspect --type container --format {"id":{{json .Id}},'

pytestmark = pytest.mark.skipif(not SSHD.exists(), reason="openssh-server is not installed")


class Engine:
    """What docker says of the container ``n1``."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        self.docker = StandIns(folder)
        self.at(BEFORE)
        self.docker.install("docker")
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def at(self, address: str, identity: str = "0123abcd") -> None:
        """The container runs with this address."""
        network = {"IPAddress": address, "IPPrefixLen": 8}
        state = {"id": identity, "status": "running", "policy": "no", "retries": 0}
        names = {"id": identity, "name": "/n1", "hostname": "n1", "networks": {"kind": network}}
        self.docker.answers = {
            f'{_INSPECT}"status"': {"stdout": json.dumps(state)},
            f'{_INSPECT}"name"': {"stdout": json.dumps(names)},
            "docker start": {},
        }
        self.docker.save()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(tmp_path / "bin", monkeypatch)


@contextmanager
def opened(server: Server, **host: Any) -> Iterator[Hosts]:
    """The hosts of an inventory; the Node object keeps the address of before: its kubelet has not posted another."""
    connection = {"port": server.port, "user": USER, "identityFile": str(server.folder / "user")}
    known = {"knownHosts": str(server.folder / "known_hosts"), "agent": False, "sudo": False}
    inventory = Inventory.model_validate(
        {
            "apiVersion": "nodefall.dev/v1alpha1",
            "kind": "Inventory",
            "metadata": {"name": "moved"},
            "cluster": {"kubeconfig": "unused"},
            "defaults": {"transport": "ssh", **known},
            "hosts": {"n1": connection | {"power": {"kind": "docker", "engine": "docker"}} | host},
        }
    )
    node = {"metadata": {"name": "n1"}, "status": {"addresses": [{"type": "InternalIP", "address": BEFORE}]}}
    kube = FakeKube({"/api/v1/nodes/n1": Response(200, json.dumps(node).encode(), {})})
    hosts = connect._hosts(inventory, kube, FakeClock())  # type: ignore[arg-type]
    try:
        yield hosts
    finally:
        hosts.close()


def know(server: Server, tmp_path: Path) -> None:
    """The machine's key under its former address; under its present one that of another machine."""
    another = public(keygen(tmp_path / "another"))
    lines = (f"[{BEFORE}]:{server.port} {public(server.host_key)}", f"[{AFTER}]:{server.port} {another}")
    server.know("\n".join(lines))


def server_address(hosts: Hosts) -> str:
    """The address at which the server was reached, by the server's own account."""
    outcome = hosts.send("n1", WHERE)
    assert outcome.delivery is Delivery.ANSWERED, outcome.error
    return outcome.stdout.split()[2]


def test_the_address_is_read_again_after_a_start(engine: Engine, tmp_path: Path) -> None:
    with serving(tmp_path / "sshd", address="0.0.0.0") as server, opened(server) as hosts:
        know(server, tmp_path)
        assert server_address(hosts) == BEFORE
        key = hosts.read("n1", "host-key")
        engine.at(AFTER)
        assert server_address(hosts) == BEFORE, "a living connection is not replaced"
        assert hosts.send("n1", ON).delivery is Delivery.ANSWERED
        assert server_address(hosts) == AFTER
        assert hosts.read("n1", "host-key") == key
        assert hosts.read("n1", "machine-addresses") == [AFTER]


def test_a_later_process_knows_the_machine_by_its_key(engine: Engine, tmp_path: Path) -> None:
    with serving(tmp_path / "sshd", address="0.0.0.0") as server:
        know(server, tmp_path)
        with opened(server) as hosts:
            key = hosts.read("n1", "host-key")
        engine.at(AFTER)
        with opened(server) as hosts:
            hosts.expect_host_key("n1", key)
            assert server_address(hosts) == AFTER
        with opened(server) as hosts, pytest.raises(Refused, match="has changed"):
            hosts.session("n1")


def test_another_machine_at_the_new_address_gets_nothing(engine: Engine, tmp_path: Path) -> None:
    """known_hosts has its key, and even under this address; it is not the key of the Node."""
    with serving(tmp_path / "sshd", address="0.0.0.0") as server, opened(server) as hosts:
        server.know(f"[{AFTER}]:{server.port} {public(server.host_key)}")
        engine.at(AFTER)
        hosts.expect_host_key("n1", "ssh-ed25519 SHA256:that-of-the-node")
        with pytest.raises(Refused, match="now leads to a different machine"):
            hosts.session("n1")


def test_an_address_of_the_inventory_stays_and_the_error_has_the_present_one(engine: Engine, tmp_path: Path) -> None:
    with serving(tmp_path / "sshd", address=AFTER) as server, opened(server, address=BEFORE) as hosts:
        with pytest.raises(Unreachable, match="cannot be reached") as unchanged:
            hosts.session("n1")
        assert "is now at" not in unchanged.value.message
        engine.at(AFTER)
        with pytest.raises(Unreachable) as moved:
            hosts.session("n1")
    assert moved.value.message.endswith(f"; n1 is now at {AFTER}, and the inventory has {BEFORE}")
    assert moved.value.hint.startswith(f"set address of the host to {AFTER}, or remove it")


def test_without_docker_the_address_is_that_of_the_node(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path / "sshd", address="0.0.0.0") as server:
        know(server, tmp_path)
        engine.docker.answers = {}
        engine.docker.save()
        with opened(server) as hosts:
            assert server_address(hosts) == BEFORE
        monkeypatch.setenv("PATH", "/nowhere")
        with opened(server) as hosts:
            assert hosts.session("n1")
