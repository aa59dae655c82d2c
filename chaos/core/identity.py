"""Identity binding: whether a host of the inventory is the machine behind a Node. Pure.

A host is bound by at least one proof and no contradiction. Values that several Nodes share, as the machine ID of cloned
machines and the boot ID of containers, prove nothing.

A host is recognized after a boot by the ID of its container, of its installation, or of its firmware.
``/etc/machine-id`` is not always such an ID. The entry point of kind's nodes writes a new one at each start of the
container, and where the file is in memory, each boot has another one (machine-id(5)).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from ipaddress import ip_address

from msgspec import Struct

USER_PREFIX = "system:node:"  # of the names of kubelets
_UUID = re.compile("[0-9a-f]{32}")
# Values that firmware and container images fill in: the third is a vendor's default, in both byte orders.
_MEANINGLESS = {"", "0" * 32, "f" * 32, "uninitialized"}
MACHINE = "machine "  # prefix of an ID that is the machine ID of the installation
_FILES = ("/etc/machine-id", "/run/systemd/container", "/sys/class/dmi/id/product_uuid", "/proc/self/mountinfo")
_LINES = (
    "^[0-9a-fA-F]{32} *$",
    "^[0-9a-fA-F-]{36}$",
    "^[a-z][a-z-]*$",
    "^[0-9]+ [0-9]+ [0-9:]+ [^ ]+ (/|/etc|/etc/machine-id|/etc/hostname) .*$",
)
# Prints one line for each of those that the host has: machine ID, firmware's UUID (root only), manager of the
# container, and what is mounted at these paths. Exit code 2: some files are missing.
REPORT = ("grep", "-HsoE", "|".join(_LINES), *_FILES)
# Patterns of its lines, each after its file and a colon.
REPORT_LINES = tuple(f"{file}:[^\\n]+" for file in _FILES)
_FILE_NAME = re.compile(r"^/[^: ]+:")
# docker mounts /var/lib/docker/containers/ID/hostname, podman overlay-containers/ID/userdata/hostname of its storage.
_CONTAINER = re.compile(r"/(?:[a-z]+-)?containers/(?:[^/ ]+/)?([0-9a-f]{64})/(?:userdata/)?hostname$")
# Containers with a root file system of their own, in which systemd keeps the machine ID as on any machine.
_LASTING = ("lxc", "lxc-libvirt", "systemd-nspawn")
_UNINITIALIZED = "uninitialized"  # in /etc/machine-id before the first boot
_IN_MEMORY = ("tmpfs", "ramfs", "rootfs")
_LAYERED = ("overlay", "aufs")  # whose upper layer may be in memory
_PATHS = ("/etc/machine-id", "/etc", "/")  # the first of them that is a mount point has the file


_MEANINGLESS |= {"03000200040005000006000700080009", "00020003000400050006000700080009"}


class NodeIdentity(Struct, frozen=True):
    """Identity of a Node as its kubelet reported it (status.nodeInfo, status.addresses), and its spec.providerID."""

    name: str
    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    addresses: tuple[str, ...] = ()
    provider_id: str = ""


class HostIdentity(Struct, frozen=True):
    """Identity of a host as read over its connection; "" and () where a value cannot be read.

    ``certificate_user`` is the common name of the kubelet's client certificate, ``hostname_override`` from its flags.
    Without ``has_stable_machine_id`` the machine ID may be another one after each boot, as on kind's nodes: the Node
    has that of the boot in which its kubelet registered last.
    """

    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    addresses: tuple[str, ...] = ()
    certificate_user: str = ""
    hostname_override: str = ""
    has_stable_machine_id: bool = True


@dataclass(frozen=True, slots=True)
class Binding:
    """The evidence, by kind, that a host is a Node, and the evidence that it is not, with the values."""

    proofs: tuple[str, ...]
    contradictions: tuple[str, ...]

    @property
    def is_bound(self) -> bool:
        """At least one proof and no contradiction."""
        return bool(self.proofs) and not self.contradictions


def bind(node: NodeIdentity, host: HostIdentity, nodes: Mapping[str, NodeIdentity]) -> Binding:
    """Compare a host with the Node that the inventory says it is; ``nodes`` are all Nodes of the cluster by name."""
    proofs = [*_certificate_proofs(node, host), *_value_proofs(node, host, shared_fields(node, nodes))]
    certified = host.certificate_user == USER_PREFIX + node.name
    return Binding(tuple(proofs), tuple(_contradictions(node, host, nodes, certified)))


def shared_fields(node: NodeIdentity, nodes: Mapping[str, NodeIdentity]) -> frozenset[str]:
    """The identifying fields of a Node whose values other Nodes have too."""
    return frozenset(field for field in ("machine_id", "system_uuid", "boot_id") if _is_shared(node, field, nodes))


def _certificate_proofs(node: NodeIdentity, host: HostIdentity) -> Iterator[str]:
    if host.certificate_user == USER_PREFIX + node.name:
        yield "the kubelet's client certificate"
    if host.hostname_override.lower() == node.name:
        yield "the kubelet's --hostname-override"


def _value_proofs(node: NodeIdentity, host: HostIdentity, shared: Set[str]) -> Iterator[str]:
    if "machine_id" not in shared and _same(node.machine_id, host.machine_id):
        yield "machine ID"
    if "system_uuid" not in shared and is_same_uuid(node.system_uuid, host.system_uuid):
        yield "system UUID"
    # A container has the boot ID of the machine that it runs on, which has other addresses.
    if "boot_id" not in shared and _same(node.boot_id, host.boot_id) and share_address(node.addresses, host.addresses):
        yield "boot ID"


def _contradictions(
    node: NodeIdentity, host: HostIdentity, nodes: Mapping[str, NodeIdentity], certified: bool
) -> Iterator[str]:
    if host.certificate_user.startswith(USER_PREFIX) and not certified:
        yield f"the kubelet's client certificate on the host is that of {host.certificate_user}"
    if host.hostname_override and host.hostname_override.lower() != node.name and not certified:
        yield f"the host's kubelet runs with --hostname-override={host.hostname_override}"
    # After a boot, the Node of a container has the machine ID of before, until its kubelet has reported the new one.
    is_elsewhere = _differ(node.boot_id, host.boot_id) and not share_address(node.addresses, host.addresses)
    is_meant = host.has_stable_machine_id or _owners(host, "machine_id", nodes) or is_elsewhere
    if _differ(node.machine_id, host.machine_id) and is_meant:
        yield f"the Node's machine ID is {node.machine_id}, but the host has {_owner(host, 'machine_id', nodes)}"
    if has_firmware_uuid(node) and is_uuid(host.system_uuid) and not is_same_uuid(node.system_uuid, host.system_uuid):
        yield f"the Node's system UUID is {node.system_uuid}, but the host has {_owner(host, 'system_uuid', nodes)}"
    # A certificate stays where it was issued; an address may be another one behind a NAT.
    if node.addresses and host.addresses and not certified and not share_address(node.addresses, host.addresses):
        yield f"the Node has {', '.join(node.addresses)}, but the host has {', '.join(host.addresses)}"


def _owner(host: HostIdentity, field: str, nodes: Mapping[str, NodeIdentity]) -> str:
    """The host's value, and the Nodes that have it."""
    value: str = getattr(host, field)
    owners = _owners(host, field, nodes)
    return f"{value} (that of {', '.join(owners)})" if owners else value


def _owners(host: HostIdentity, field: str, nodes: Mapping[str, NodeIdentity]) -> list[str]:
    """The Nodes that have the host's value."""
    return sorted(name for name, other in nodes.items() if _same(getattr(other, field), getattr(host, field)))


def _is_shared(node: NodeIdentity, field: str, nodes: Mapping[str, NodeIdentity]) -> bool:
    value: str = getattr(node, field)
    return any(other.name != node.name and _same(getattr(other, field), value) for other in nodes.values())


def _normalized(value: str) -> str:
    return value.strip().replace("-", "").lower()


def _same(one: str, other: str) -> bool:
    return _normalized(one) == _normalized(other) and _normalized(one) not in _MEANINGLESS


def _differ(one: str, other: str) -> bool:
    known = _normalized(one) not in _MEANINGLESS and _normalized(other) not in _MEANINGLESS
    return known and not _same(one, other)


def is_uuid(value: str) -> bool:
    """Whether ``value`` is a real UUID, and not a placeholder of a vendor."""
    return bool(_UUID.fullmatch(_normalized(value))) and _normalized(value) not in _MEANINGLESS


def has_firmware_uuid(node: NodeIdentity) -> bool:
    """Where the firmware's UUID is unreadable, as in containers, kubelets report the machine ID instead."""
    return is_uuid(node.system_uuid) and not _same(node.system_uuid, node.machine_id)


def is_same_uuid(one: str, other: str) -> bool:
    """Equal, or equal with the first three fields in the other byte order: SMBIOS before 2.6 did not define it."""
    return _same(one, other) or (is_uuid(other) and _same(one, swap_uuid(other.strip())))


def swap_uuid(value: str) -> str:
    """A UUID with the first three fields in the other byte order. Raises ValueError if the text is not a UUID."""
    return str(uuid.UUID(bytes=uuid.UUID(value).bytes_le))


def share_address(one: Iterable[str], other: Iterable[str]) -> bool:
    """Whether two machines have an IP address in common."""
    return bool(set(map(_address, one)) & set(map(_address, other)))


def _address(text: str) -> str:
    try:
        return str(ip_address(text.partition("%")[0]))
    except ValueError:
        return text


def stable_id(report: str) -> str:
    """``container ID``, ``machine ID`` or ``system UUID`` from the output of :data:`REPORT`.

    "" if nothing on the host is known to be the same after its next boot.
    """
    words, mounts = _parse(report)
    if container := _container_id(mounts):
        return f"container {container}"
    managers = [word for word in words if re.fullmatch("[a-z][a-z-]*", word) and not _is_machine_id(word)]
    is_lasting = any(manager in _LASTING for manager in managers)
    if not is_lasting and any(manager != _UNINITIALIZED for manager in managers):
        return ""
    ids = machine_ids(report)
    if ids and _is_on_disk(mounts, may_be_layered=is_lasting):
        return f"{MACHINE}{ids[0]}"
    return next((f"system {word.lower()}" for word in words if len(word) == 36 and is_uuid(word)), "")


def machine_ids(report: str) -> list[str]:
    """The machine ID of the boot, in lower case; none if the host has none."""
    return [word.lower() for word in _parse(report)[0] if _is_machine_id(word)]


def host_key(report: str, known: str = "") -> str:
    """The key by which a connection without a host key recognizes its host, or "".

    That is the stable ID, and without one the machine ID of the boot: another one is refused then, though it may be
    the same host after a boot. ``known`` is the key of before: a machine ID counts as long as the host has it.
    """
    keys = [f"{MACHINE}{found}" for found in machine_ids(report)]
    if known in keys:
        return known
    return stable_id(report) or next(iter(keys), "")


def _parse(report: str) -> tuple[list[str], list[list[str]]]:
    """The words, and the fields of mounts (proc_pid_mountinfo(5)), whose paths have no spaces."""
    lines = [_FILE_NAME.sub("", line.strip(" \r")) for line in report.split("\n")]
    return [line for line in lines if " " not in line], [fields for line in lines if len(fields := line.split(" ")) > 6]


def _is_machine_id(word: str) -> bool:
    return bool(re.fullmatch("[0-9a-fA-F]{32}", word)) and is_uuid(word)


def _container_id(mounts: Iterable[Sequence[str]]) -> str:
    """The ID in the path of what an engine mounts over /etc/hostname, "" if none did."""
    found = (_CONTAINER.search(fields[3]) for fields in mounts if fields[4] == "/etc/hostname")
    return next((match[1] for match in found if match), "")


def _is_on_disk(mounts: Sequence[Sequence[str]], *, may_be_layered: bool) -> bool:
    """Whether the file system with /etc/machine-id is known to survive a boot."""
    for path in _PATHS:
        kinds = [fields[fields.index("-") + 1] for fields in mounts if fields[4] == path and "-" in fields[5:-1]]
        if kinds:
            return kinds[-1] not in _IN_MEMORY and (may_be_layered or kinds[-1] not in _LAYERED)
    return True
