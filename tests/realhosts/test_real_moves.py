"""Containers that get another address at their start, as their former one is taken meanwhile."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from chaos.app.wiring import connect
from chaos.core.clock.system import SystemClock
from chaos.core.command import Delivery, HostCommand, PowerCommand, PowerVerb
from chaos.core.inventory import Inventory
from chaos.core.ports import Response
from chaos.machines.pool import Hosts
from tests.kit.drive import drive
from tests.kit.fakes import FakeKube
from tests.kit.machines import RealHost, image

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
WHERE = HostCommand(("sh", "-c", "echo $SSH_CONNECTION"), sudo=False)


def take_address(stack: ExitStack, host: RealHost, address: str) -> None:
    """Another container gets the former address of ``host``, which is off, until the end of ``stack``."""
    names = "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}"
    network = host.docker("inspect", "--format", names, host.name)
    name = f"{host.name}-other"
    stack.callback(host.docker, "rm", "--force", name, check=False)
    options = ("--detach", "--name", name, "--network", network, "--ip", address)
    host.docker("run", *options, image(host.docker), "sleep", "infinity")


def open_hosts(stack: ExitStack, host: RealHost, folder: Path) -> Hosts:
    """As for an inventory without an address; the Node object has the present one and never another."""
    address = host.addresses[0]
    (folder / "known_hosts").write_text("".join(f"{address} {key}\n" for key in host.host_keys))
    power = {"kind": "docker", "container": host.name}
    inventory = Inventory.model_validate(
        {
            "apiVersion": "nodefall.dev/v1alpha1",
            "kind": "Inventory",
            "metadata": {"name": "moves"},
            "cluster": {"kubeconfig": "unused"},
            "defaults": {"user": "chaos", "identityFile": str(host.identity), "agent": False},
            "hosts": {host.name: {"knownHosts": str(folder / "known_hosts"), "power": power}},
        }
    )
    node = {"metadata": {"name": host.name}, "status": {"addresses": [{"type": "InternalIP", "address": address}]}}
    kube = FakeKube({f"/api/v1/nodes/{host.name}": Response(200, json.dumps(node).encode(), {})})
    clock = stack.enter_context(closing(SystemClock()))
    hosts = connect._hosts(inventory, kube, clock)  # type: ignore[arg-type]
    stack.callback(hosts.close)
    return hosts


def server_address(hosts: Hosts, node: str) -> str:
    outcome = hosts.send(node, WHERE)
    assert outcome.delivery is Delivery.ANSWERED, outcome.error
    return outcome.stdout.split()[2]


def test_a_session_follows_the_container(three: list[RealHost], tmp_path: Path) -> None:
    host = three[0]
    with ExitStack() as stack:
        hosts = open_hosts(stack, host, tmp_path)
        before, key = server_address(hosts, host.name), hosts.read(host.name, "host-key")
        assert hosts.send(host.name, PowerCommand(PowerVerb.OFF)).delivery is Delivery.ANSWERED
        take_address(stack, host, before)
        assert hosts.send(host.name, PowerCommand(PowerVerb.ON)).delivery is Delivery.ANSWERED
        host.await_boot()
        assert host.addresses[0] != before
        assert server_address(hosts, host.name) == host.addresses[0]
        assert hosts.read(host.name, "host-key") == key


def test_a_run_reports_where_the_machine_is_now(three: list[RealHost], tmp_path: Path) -> None:
    host = three[0]
    before = host.addresses[0]
    with ExitStack() as stack:

        def during(_: Hosts) -> None:
            take_address(stack, host, before)

        result = drive(host, "power-cut", {}, tmp_path, during=during, then="6s")
        assert [undo.proven for undo in result.undo] == [True], result.leftovers
        (change,) = result.address_changes
        assert change.startswith(f"{host.name} is now at {host.addresses[0]}")
        assert f"(was {before}" in change
        assert change in result.notes
        host.await_boot()
