"""The identity of real machines, which share a kernel and its firmware's UUID with the machine that they run on.

Containers get another address at their start, as their former one is taken meanwhile.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from msgspec import structs

from chaos.app.wiring import connect
from chaos.cluster.cluster_state import UnknownFact
from chaos.core.clock.system import SystemClock
from chaos.core.command import Delivery, HostCommand, PowerCommand, PowerVerb
from chaos.core.identity import HostIdentity, NodeIdentity, bind
from chaos.core.inventory import Inventory
from chaos.core.ports import MachineIdentity, Response
from chaos.core.power_identity import bind_power
from chaos.engine.planning.identity import HOST_FACTS, host_identity
from chaos.lab.node.kubelet.apiserver_link import FILE, client_certificate
from chaos.machines.pool import Hosts
from tests.kit.drive import drive, open_hosts
from tests.kit.fakes import FakeKube
from tests.kit.machines import RealHost, image

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]


@pytest.fixture
def identities(three: list[RealHost], tmp_path: Path) -> dict[str, HostIdentity]:
    """As read over SSH, without a kubelet's certificate."""
    hosts = open_hosts({host.name: host for host in three}, tmp_path, SystemClock())
    found: dict[str, HostIdentity] = {}
    try:
        for host in three:
            facts = {}
            for name in HOST_FACTS:
                try:
                    facts[name] = hosts.read(host.name, name)
                except UnknownFact:
                    if name not in ("kubelet-user", "system-uuid"):
                        raise
            found[host.name] = host_identity(facts)
    finally:
        hosts.close()
    return found


def node_of(name: str, host: HostIdentity) -> NodeIdentity:
    """What the kubelet of a container reports: its machine ID twice, and the boot ID of the outer machine."""
    return NodeIdentity(name, host.machine_id, host.machine_id, host.boot_id, host.addresses)


def test_machines_are_bound_to_their_own_nodes_only(identities: dict[str, HostIdentity]) -> None:
    nodes = {name: node_of(name, host) for name, host in identities.items()}
    for name, node in nodes.items():
        for other, host in identities.items():
            assert bind(node, host, nodes).is_bound == (name == other)
    assert len({host.boot_id for host in identities.values()}) == 1
    clones = {name: structs.replace(node, machine_id="a" * 32, system_uuid="") for name, node in nodes.items()}
    for name, node in clones.items():
        host = structs.replace(identities[name], machine_id="a" * 32)
        assert not bind(node, host, clones).proofs
        certified = structs.replace(host, certificate_user=f"system:node:{name}")
        assert bind(node, certified, clones).is_bound


def test_power_controls_are_bound_to_their_own_nodes_only(
    three: list[RealHost], identities: dict[str, HostIdentity]
) -> None:
    nodes = {name: node_of(name, host) for name, host in identities.items()}
    for host in three:
        control = host.power()
        assert isinstance(control, MachineIdentity)
        power = control.identity()
        assert set(power.addresses) == set(host.addresses)
        for name, node in nodes.items():
            assert bind_power(node, identities[name], power, nodes).is_bound == (name == host.name)


def test_the_certificate_is_read_without_its_key(three: list[RealHost], tmp_path: Path) -> None:
    host = three[0]
    host.docker("exec", "-i", host.name, "sh", "-c", f"mkdir -p $(dirname {FILE}); umask 077; cat > {FILE}",
                stdin=client_certificate(host.name).encode())  # fmt: skip
    hosts = open_hosts({host.name: host}, tmp_path, SystemClock())
    try:
        assert hosts.read(host.name, "kubelet-user") == f"system:node:{host.name}"
    finally:
        hosts.close()
        host.run(f"rm {FILE}")


WHERE = HostCommand(("sh", "-c", "echo $SSH_CONNECTION"), sudo=False)


def take_address(stack: ExitStack, host: RealHost, address: str) -> None:
    """Another container gets the former address of ``host``, which is off, until the end of ``stack``."""
    names = "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}"
    network = host.docker("inspect", "--format", names, host.name)
    name = f"{host.name}-other"
    stack.callback(host.docker, "rm", "--force", name, check=False)
    options = ("--detach", "--name", name, "--network", network, "--ip", address)
    host.docker("run", *options, image(host.docker), "sleep", "infinity")


def hosts_by_node(stack: ExitStack, host: RealHost, folder: Path) -> Hosts:
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
        hosts = hosts_by_node(stack, host, tmp_path)
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
