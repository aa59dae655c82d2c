"""Self-protection: by machine ID, address, pod, jump host, path of connections, and the API server's address."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.engine.observations import ClusterObservations, HostObservations, LocalIdentity
from tests.kit.preflightkit import OWN, USE, host, messages, node, observed, pod

ID, OTHER = OWN.machine_id, "fedcba9876543210fedcba9876543210"


def with_id(own: str, its: str) -> ClusterObservations:
    return observed(host(machine_id=its), local_identity=LocalIdentity(own))


def by_node(machine_id: str) -> ClusterObservations:
    """A host that is skipped: only its Node object is known."""
    silent = HostObservations("n1", replace(host().target, facts={}), is_skipped=True)
    return observed(silent, nodes=(node("n1", "10.0.0.1", machine_id=machine_id),))


THIS_MACHINE = [
    (with_id(ID, ID), "is the machine that nodefall runs on (machine ID"),
    (with_id(ID + "\n", ID.upper()), "runs on"),
    (with_id(ID, "01234567-89ab-cdef-0123-456789abcdef"), "runs on"),
    (with_id(ID, ""), "no machine ID"),
    (with_id("", "uninitialized\n"), "no machine ID"),
    (by_node(ID), "runs on"),
    # A container with the host's network has addresses of the host, and another machine ID.
    (
        observed(nodes=(node("n1", "10.0.0.99"),), local_identity=replace(OWN, boot_id="its-boot")),
        "runs on (address 10.0.0.99)",
    ),
    (
        observed(nodes=(node("n1", "10.0.0.99"),), local_identity=replace(OWN, boot_id="")),
        "runs on (address 10.0.0.99)",
    ),
    (
        observed(host(host_addresses=["10.0.0.99"]), local_identity=replace(OWN, boot_id="its-boot")),
        "(address 10.0.0.99)",
    ),
    (
        observed(pods=(pod("chaos-1", "n1", namespace="c"),), local_identity=LocalIdentity(pod="c/chaos-1")),
        "as the pod c/chaos-1",
    ),
    # The host name of a pod is cut off, its UID is not.
    (
        observed(
            pods=(pod("chaos-1-long", "n1", namespace="c", uid="a"),),
            local_identity=LocalIdentity(pod="c/chaos-1", pod_uid="a"),
        ),
        "as the pod c/chaos-1-long",
    ),
    (observed(jump_addresses={"n1": frozenset()}), "is the jump host n1"),
    (observed(jump_addresses={"bastion": frozenset({"10.0.0.1"})}), "is the jump host bastion"),
    (observed(host(ssh_peer={"address": "10.0.0.1", "port": 22})), "the connection to n1 comes from n1 (10.0.0.1)"),
    (observed(host(ssh_peer={"address": "::ffff:10.0.0.1", "port": 22})), "comes from n1"),
    (observed(host(connection_peers=["10.0.0.1", "10.9.9.9"])), "the connection to n1 comes from n1 (10.0.0.1)"),
    (
        observed(api_server_addresses=frozenset({"10.0.0.1"})),
        "holds the address of the API server that nodefall uses (10.0.0.1)",
    ),
    # A virtual address, which is in no Node object.
    (
        observed(host(host_addresses=["10.0.0.1", "10.0.0.250"]), api_server_addresses=frozenset({"10.0.0.250"})),
        "(10.0.0.250)",
    ),
]


@pytest.mark.parametrize(("observations", "text"), THIS_MACHINE)
def test_this_machine(observations: ClusterObservations, text: str) -> None:
    ((severity, where, message),) = messages("self-protection", observations)
    assert (severity, where) == ("refusal", "n1")
    assert text in message


def test_the_path_to_another_host() -> None:
    through = observed(
        host("n1"),
        host("n2", ssh_peer={"address": "10.0.0.1", "port": 22}),
        nodes=(node("n1", "10.0.0.1"), node("n2", "10.0.0.2")),
    )
    found = messages("self-protection", through)
    assert [(severity, where) for severity, where, _ in found] == [("refusal", "n1"), ("ok", "n2")]
    assert "the connection to n2 comes from n1 (10.0.0.1)" in found[0][2]


OTHER_MACHINES = [
    with_id(ID, OTHER),
    with_id("", OTHER),
    with_id("uninitialized", OTHER),
    # Two networks may use the same private addresses: another kernel is another machine.
    observed(nodes=(node("n1", "10.0.0.99"),)),
    observed(host(host_addresses=["172.17.0.1"]), local_identity=replace(OWN, addresses=frozenset({"172.17.0.1"}))),
    # kind: nodes share the local kernel, and have other addresses.
    observed(local_identity=replace(OWN, boot_id="its-boot")),
    observed(
        host(ssh_peer={}),
        jump_addresses={"bastion": frozenset({"10.0.0.7"})},
        api_server_addresses=frozenset({"10.0.0.8"}),
    ),
    observed(pods=(pod("chaos-1", "n2", namespace="c"),), local_identity=LocalIdentity(pod="c/chaos-1")),
    # A pod of another cluster, whose name and namespace a pod has here, too.
    observed(
        pods=(pod("chaos-1", "n1", namespace="c", uid="b"),),
        local_identity=LocalIdentity(pod="c/chaos-1", pod_uid="a"),
    ),
    observed(nodes=(node("n1", "127.0.0.1"),), local_identity=replace(OWN, addresses=frozenset(), boot_id="its-boot")),
    by_node(OTHER),
]


@pytest.mark.parametrize("observations", OTHER_MACHINES)
def test_another_machine(observations: ClusterObservations) -> None:
    assert messages("self-protection", observations) == [("ok", "n1", "it is another machine")]


def test_only_one_reason_is_reported() -> None:
    observations = observed(
        host(machine_id=ID),
        api_server_addresses=frozenset({"10.0.0.1"}),
        jump_addresses={"n1": frozenset()},
        experiments=(USE,),
    )
    assert len(messages("self-protection", observations)) == 1
