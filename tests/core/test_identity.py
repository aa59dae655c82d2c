"""A host is bound to its Node by a proof and no contradiction.

What a host is recognized by after a boot, from the lines of real hosts.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from chaos.core.identity import REPORT, HostIdentity, NodeIdentity, bind, host_key, stable_id

NODE = NodeIdentity(
    "worker-1",
    machine_id="4c4c4544004d4c108058c4c04f4d4e32",
    system_uuid="4c4c4544-0033-3310-8044-b7c04f443232",
    boot_id="9a1c1d6b-71f0-4a7e-9e0f-5b2d1c4e8a01",
    addresses=("10.0.0.11",),
)
HOST = HostIdentity(NODE.machine_id, NODE.system_uuid, NODE.boot_id, ("10.0.0.11", "fd00::11"))
OTHER = NodeIdentity("cp-1", "1" * 32, "11111111-1111-1111-1111-111111111111", "other-boot", ("10.0.0.1",))
ID, UUID, CONTAINER = "b81c4c4544004d4c108058c4c04f4d4e", "4C4C4544-0033-3310-8044-B7C04F443232", "3f2a" * 16
DOCKER = f"1290 1280 254:1 /var/lib/docker/containers/{CONTAINER}/hostname /etc/hostname rw,relatime - ext4 /dev/vda rw"
OWN_DISK = f"1290 1280 254:1 /containers/{CONTAINER}/hostname /etc/hostname rw,relatime - ext4 /dev/vdb rw"
PODMAN = (
    f"812 790 0:24 /containers/storage/overlay-containers/{CONTAINER}/userdata/hostname /etc/hostname "
    "rw,nosuid,nodev - tmpfs tmpfs rw,mode=755"
)
NERDCTL = f"812 790 0:24 /nerdctl/1935db59/containers/default/{CONTAINER}/hostname /etc/hostname rw - ext4 /dev/vda rw"
SANDBOX = f"812 790 0:24 /io.containerd.grpc.v1.cri/sandboxes/{CONTAINER}/hostname /etc/hostname rw - ext4 /dev/vda rw"
TRANSIENT = "41 25 0:23 /machine-id /etc/machine-id ro,nosuid - tmpfs tmpfs rw,mode=755"
ETC_IN_MEMORY = "38 25 0:31 / /etc rw - tmpfs tmpfs rw"
LAYERED = "38 25 0:31 / /etc rw - overlay overlay rw,lowerdir=/sysroot/etc,upperdir=/run/etc,workdir=/run/work"
ROOT_LAYERED = "22 1 0:31 / / rw - overlay overlay rw,lowerdir=/a,upperdir=/b"
ROOT_IN_MEMORY = "1 0 0:2 / / rw - rootfs none rw"
ROOT = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw"
BOUND = "41 25 254:3 /etc/machine-id /etc/machine-id rw - ext4 /dev/vda3 rw"


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


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((ID, UUID), f"machine {ID}"),
        ((ID,), f"machine {ID}"),  # the firmware's is for root alone
        ((ID, "docker", UUID, DOCKER), f"container {CONTAINER}"),  # kind
        ((ID, UUID, DOCKER), f"container {CONTAINER}"),  # systemd does not know that it is in a container
        ((ID, "docker", OWN_DISK), f"container {CONTAINER}"),
        ((ID, "podman", PODMAN), f"container {CONTAINER}"),
        ((ID, "docker", NERDCTL), f"container {CONTAINER}"),
        ((ID, "docker", UUID), ""),  # whose ID cannot be read: nothing is known to last
        ((ID, "kubernetes", SANDBOX, UUID), ""),  # a sandbox is made again
        ((ID, "lxc", UUID), f"machine {ID}"),
        ((ID, "systemd-nspawn"), f"machine {ID}"),
        ((ID, UUID, TRANSIENT), f"system {UUID.lower()}"),
        ((ID, TRANSIENT), ""),
        ((ID, UUID, BOUND), f"machine {ID}"),
        ((ID, UUID, ROOT), f"machine {ID}"),
        ((ID, UUID, ROOT, ETC_IN_MEMORY), f"system {UUID.lower()}"),  # booted over the network
        ((ID, UUID, ROOT, LAYERED), f"system {UUID.lower()}"),  # the upper layer may be in memory
        ((ID, UUID, ROOT_LAYERED), f"system {UUID.lower()}"),
        ((ID, ROOT_IN_MEMORY), ""),
        ((ID, ROOT, LAYERED, BOUND), f"machine {ID}"),
        ((ID, "lxc", ROOT_LAYERED), f"machine {ID}"),
        ((f"{ID.upper()}  ", UUID), f"machine {ID}"),
        ((ID, "1 2 3:4 /m\x0bdocker\x0by /etc/hostname rw - ext4 /dev/vda1 rw"), f"machine {ID}"),
        (("uninitialized", UUID), f"system {UUID.lower()}"),
        (("0" * 32, UUID), f"system {UUID.lower()}"),
        (("uninitialized",), ""),
        ((ID, "00000000-0000-0000-0000-000000000000"), f"machine {ID}"),
        ((), ""),
    ],
)
def test_stable_id(lines: tuple[str, ...], expected: str) -> None:
    assert stable_id("".join(f"{line}\n" for line in lines)) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((ID, UUID), f"machine {ID}"),
        ((ID, "docker", DOCKER), f"container {CONTAINER}"),
        ((ID, "docker"), f"machine {ID}"),  # of this boot: better than nothing
        ((ID, TRANSIENT), f"machine {ID}"),
        ((ID, UUID, TRANSIENT), f"system {UUID.lower()}"),
        (("uninitialized", "docker"), ""),
        ((), ""),
    ],
)
def test_key_of_a_connection_without_one(lines: tuple[str, ...], expected: str) -> None:
    assert host_key("\n".join(lines)) == expected


@pytest.mark.parametrize(
    ("known", "key"), [(f"machine {ID}", f"machine {ID}"), ("machine x", f"container {CONTAINER}")]
)
def test_a_machine_id_of_before_counts_as_long_as_the_host_has_it(known: str, key: str) -> None:
    """A run that 0.2.0 began knows a container by its machine ID."""
    assert host_key(f"{ID}\ndocker\n{DOCKER}\n", known) == key


@given(st.text(max_size=300))
def test_any_text_is_no_error(report: str) -> None:
    assert stable_id(report) == "" or " " in stable_id(report)


def test_a_real_grep_reports_what_this_machine_is() -> None:
    grep = shutil.which("grep")
    assert grep
    done = subprocess.run([grep, *REPORT[1:]], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 1, 2)
    assert done.stderr == ""
    with open("/etc/machine-id", encoding="ascii") as file:
        machine_id = file.read().strip()
    assert f"/etc/machine-id:{machine_id}" in done.stdout.splitlines()
    assert host_key(done.stdout, f"machine {machine_id}") == f"machine {machine_id}"
