"""The identity of real machines, which share a kernel and its firmware's UUID with the machine that they run on."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from chaos.cluster.cluster_state import UnknownFact
from chaos.core.clock import SystemClock
from chaos.core.identity import HostIdentity, NodeIdentity, bind
from chaos.core.ports import MachineIdentity
from chaos.core.power_identity import bind_power
from chaos.engine.planning.identity import HOST_FACTS, host_identity
from chaos.lab.node.kubelet.client_certificate import FILE, client_certificate
from tests.kit.drive import open_hosts
from tests.kit.machines import RealHost

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
