"""Never ourselves: by machine ID, address, pod, jump host, the way of our lines, and the API server's address."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.preflight.observations import ClusterObservations, HostObservations, LocalIdentity
from tests.kit.preflightkit import OWN, USE, host, node, pod, said, signs

ID, OTHER = OWN.machine_id, "fedcba9876543210fedcba9876543210"


def with_id(own: str, its: str) -> ClusterObservations:
    return signs(host(machine_id=its), own=LocalIdentity(own))


def by_node(machine_id: str) -> ClusterObservations:
    """One that nobody asks anything: its Node object alone tells."""
    silent = HostObservations("n1", replace(host().target, facts={}), is_skipped=True)
    return signs(silent, nodes=(node("n1", "10.0.0.1", machine_id=machine_id),))


OURSELVES = [
    (with_id(ID, ID), "is the machine that nodefall runs on (machine ID"),
    (with_id(ID + "\n", ID.upper()), "runs on"),
    (with_id(ID, "01234567-89ab-cdef-0123-456789abcdef"), "runs on"),
    (with_id(ID, ""), "no machine ID"),
    (with_id("", "uninitialized\n"), "no machine ID"),
    (by_node(ID), "runs on"),
    # A container with the host's network has addresses of the host, and another machine ID.
    (signs(nodes=(node("n1", "10.0.0.99"),), own=replace(OWN, boot_id="its-boot")), "runs on (address 10.0.0.99)"),
    (signs(nodes=(node("n1", "10.0.0.99"),), own=replace(OWN, boot_id="")), "runs on (address 10.0.0.99)"),
    (signs(host(host_addresses=["10.0.0.99"]), own=replace(OWN, boot_id="its-boot")), "(address 10.0.0.99)"),
    (signs(pods=(pod("chaos-1", "n1", namespace="c"),), own=LocalIdentity(pod="c/chaos-1")), "as the pod c/chaos-1"),
    (signs(jumps={"n1": frozenset()}), "is the jump host n1"),
    (signs(jumps={"bastion": frozenset({"10.0.0.1"})}), "is the jump host bastion"),
    (signs(host(ssh_peer={"address": "10.0.0.1", "port": 22})), "the line to n1 comes from n1 (10.0.0.1)"),
    (signs(host(ssh_peer={"address": "::ffff:10.0.0.1", "port": 22})), "comes from n1"),
    (signs(server=frozenset({"10.0.0.1"})), "holds the address of the API server that nodefall uses (10.0.0.1)"),
    # A virtual address, which no Node object tells.
    (signs(host(host_addresses=["10.0.0.1", "10.0.0.250"]), server=frozenset({"10.0.0.250"})), "(10.0.0.250)"),
]


@pytest.mark.parametrize(("looked_at", "words"), OURSELVES)
def test_ourselves(looked_at: ClusterObservations, words: str) -> None:
    ((severity, where, says),) = said("ourselves", looked_at)
    assert (severity, where) == ("refusal", "n1")
    assert words in says


def test_the_way_to_another_host() -> None:
    through = signs(
        host("n1"),
        host("n2", ssh_peer={"address": "10.0.0.1", "port": 22}),
        nodes=(node("n1", "10.0.0.1"), node("n2", "10.0.0.2")),
    )
    found = said("ourselves", through)
    assert [(severity, where) for severity, where, _ in found] == [("refusal", "n1"), ("ok", "n2")]
    assert "the line to n2 comes from n1 (10.0.0.1)" in found[0][2]


SOMEBODY_ELSE = [
    with_id(ID, OTHER),
    with_id("", OTHER),
    with_id("uninitialized", OTHER),
    # Private addresses are used twice: another kernel is another machine.
    signs(nodes=(node("n1", "10.0.0.99"),)),
    signs(host(host_addresses=["172.17.0.1"]), own=replace(OWN, addresses=frozenset({"172.17.0.1"}))),
    # kind: nodes share our kernel, and have addresses of their own.
    signs(own=replace(OWN, boot_id="its-boot")),
    signs(host(ssh_peer={}), jumps={"bastion": frozenset({"10.0.0.7"})}, server=frozenset({"10.0.0.8"})),
    signs(pods=(pod("chaos-1", "n2", namespace="c"),), own=LocalIdentity(pod="c/chaos-1")),
    signs(nodes=(node("n1", "127.0.0.1"),), own=replace(OWN, addresses=frozenset(), boot_id="its-boot")),
    by_node(OTHER),
]


@pytest.mark.parametrize("looked_at", SOMEBODY_ELSE)
def test_another_machine(looked_at: ClusterObservations) -> None:
    assert said("ourselves", looked_at) == [("ok", "n1", "it is another machine")]


def test_only_one_reason_is_told() -> None:
    looked_at = signs(host(machine_id=ID), server=frozenset({"10.0.0.1"}), jumps={"n1": frozenset()}, uses=(USE,))
    assert len(said("ourselves", looked_at)) == 1
