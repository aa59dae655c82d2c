"""A host is bound to its Node by a proof and no contradiction."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from chaos.core.identity import HostIdentity, NodeIdentity, bind

NODE = NodeIdentity(
    "worker-1",
    machine_id="4c4c4544004d4c108058c4c04f4d4e32",
    system_uuid="4c4c4544-0033-3310-8044-b7c04f443232",
    boot_id="9a1c1d6b-71f0-4a7e-9e0f-5b2d1c4e8a01",
    addresses=("10.0.0.11",),
)
HOST = HostIdentity(NODE.machine_id, NODE.system_uuid, NODE.boot_id, ("10.0.0.11", "fd00::11"))
OTHER = NodeIdentity("cp-1", "1" * 32, "11111111-1111-1111-1111-111111111111", "other-boot", ("10.0.0.1",))


def bound(host: dict[str, Any], node: NodeIdentity = NODE, *others: NodeIdentity) -> tuple[bool, str]:
    nodes = {each.name: each for each in (node, *others)}
    binding = bind(node, structs.replace(HOST, **host), nodes)
    return binding.is_bound, "; ".join(binding.contradictions)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ({}, (True, "")),
        ({"machine_id": "", "system_uuid": "", "boot_id": ""}, (False, "")),
        ({"machine_id": "", "boot_id": ""}, (True, "")),
        ({"boot_id": "another"}, (True, "")),  # the kubelet may not have reported this boot yet
        ({"system_uuid": "44454C4C-3300-1033-8044-B7C04F443232"}, (True, "")),  # the other byte order
        ({"system_uuid": "Not Settable"}, (True, "")),
        ({"certificate_user": "system:node:worker-1"}, (True, "")),
        ({"certificate_user": "system:node:worker-1", "addresses": ("192.0.2.9",)}, (True, "")),
        ({"hostname_override": "worker-1", "machine_id": "", "system_uuid": "", "boot_id": ""}, (True, "")),
        ({"addresses": ("10.0.0.012", "fd00::11")}, (False, "the Node has 10.0.0.11")),
        ({"addresses": ("192.0.2.9",)}, (False, "the Node has 10.0.0.11, but the host has 192.0.2.9")),
        ({"machine_id": "1" * 32}, (False, "but the host has " + "1" * 32 + " (that of cp-1)")),
        ({"machine_id": "2" * 32, "has_stable_machine_id": False}, (True, "")),  # of a boot that is not reported yet
        ({"machine_id": "1" * 32, "has_stable_machine_id": False}, (False, "(that of cp-1)")),
        (  # a node of another cluster that has its name
            {
                "machine_id": "2" * 32,
                "has_stable_machine_id": False,
                "boot_id": "another",
                "addresses": ("10.9.9.9",),
                "certificate_user": "system:node:worker-1",
            },
            (False, "the Node's machine ID is "),
        ),
        ({"system_uuid": OTHER.system_uuid}, (False, "(that of cp-1)")),
        (
            {"certificate_user": "system:node:cp-1"},
            (False, "client certificate on the host is that of system:node:cp-1"),
        ),
        ({"hostname_override": "cp-1"}, (False, "--hostname-override=cp-1")),
    ],
)
def test_one_host(host: dict[str, Any], expected: tuple[bool, str]) -> None:
    is_bound, contradictions = bound(host, NODE, OTHER)
    assert is_bound == expected[0]
    assert expected[1] in contradictions
    assert bool(contradictions) == bool(expected[1])


def test_a_container_reports_its_machine_id_as_system_uuid() -> None:
    node = structs.replace(NODE, system_uuid=NODE.machine_id)
    assert bound({"system_uuid": OTHER.system_uuid}, node) == (True, "")


def test_clones_need_the_certificate() -> None:
    clone = structs.replace(NODE, name="worker-2", addresses=("10.0.0.11",))
    assert bound({}, NODE, clone) == (False, "")
    assert bound({"certificate_user": "system:node:worker-1"}, NODE, clone) == (True, "")
    assert not bound({"certificate_user": "system:node:worker-2"}, NODE, clone)[0]


VALUES = st.sampled_from(["", "a" * 32, "b" * 32, "c" * 32])
NAMES = ("n0", "n1", "n2", "n3")


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, tuple[NodeIdentity, HostIdentity]]:
    """Nodes, and the true host of each; any of them may share values, or hide them."""
    made = {}
    for number, name in enumerate(NAMES):
        machine, system, boot = draw(VALUES), draw(VALUES), draw(VALUES)
        address = (f"10.0.0.{number}",)
        user = draw(st.sampled_from(["", f"system:node:{name}"]))
        node = NodeIdentity(name, machine, system, boot, address)
        made[name] = (node, HostIdentity(machine, system, boot, address, user))
    return made


@given(clusters(), st.permutations(NAMES))
def test_no_host_is_ever_bound_to_another_node(
    cluster: dict[str, tuple[NodeIdentity, HostIdentity]], order: list[str]
) -> None:
    """Inventories with swapped entries."""
    nodes = {name: node for name, (node, _) in cluster.items()}
    for name, other in zip(NAMES, order, strict=True):
        if name != other:
            assert not bind(nodes[name], cluster[other][1], nodes).is_bound


@given(clusters())
def test_the_true_host_is_never_contradicted(cluster: dict[str, tuple[NodeIdentity, HostIdentity]]) -> None:
    nodes = {name: node for name, (node, _) in cluster.items()}
    for node, host in cluster.values():
        assert bind(node, host, nodes).contradictions == ()


@given(clusters())
def test_a_certificate_suffices(cluster: dict[str, tuple[NodeIdentity, HostIdentity]]) -> None:
    nodes = {name: node for name, (node, _) in cluster.items()}
    for node, host in cluster.values():
        certified = structs.replace(host, certificate_user=f"system:node:{node.name}")
        assert bind(node, certified, nodes).is_bound
