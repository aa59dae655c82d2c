"""What this machine is, and what it needs to reach a cluster and its hosts: none of that may become a target."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from chaos.app.connect import local_machine_id, login
from chaos.hosts.transports.settings import HostSettings, LocalUser, host_settings
from chaos.model.inventory import Inventory
from chaos.preflight.observations import LocalIdentity

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def local_identity(others: Iterable[str]) -> LocalIdentity:
    """``others`` are addresses of nodes and of the API server: each way there begins at an address of ours."""
    addresses = {_source_address(address) for address in others} - {""}
    namespace = _read(_NAMESPACE)
    pod = f"{namespace}/{socket.gethostname()}" if namespace else ""
    return LocalIdentity(local_machine_id(), frozenset(addresses), _read(_BOOT_ID), pod)


def server_addresses(url: str) -> frozenset[str]:
    """Of the API server, without loopback."""
    return resolve(urlsplit(url).hostname or "")


def jump_hosts(inventory: Inventory, nodes: Iterable[str]) -> dict[str, frozenset[str]]:
    """The addresses of all jump hosts on the way to these nodes: by node, where it is a host of the inventory."""
    local = LocalUser(login(), Path.home())
    found: dict[str, frozenset[str]] = {}
    for node in nodes:
        key, host = inventory.host_of(node)
        if (host.transport or inventory.defaults.transport) != "docker":
            for jump in host_settings(inventory, key, local, node).jumps:
                found[_node_of(inventory, jump)] = resolve(jump.address)
    return found


def resolve(name: str) -> frozenset[str]:
    """The addresses of a name, without loopback; none where it has none."""
    try:
        found = {str(entry[4][0]).split("%")[0] for entry in socket.getaddrinfo(name, None)} if name else set()
    except OSError:
        return frozenset()
    return frozenset(text for text in found if not ipaddress.ip_address(text).is_loopback)


def _node_of(inventory: Inventory, jump: HostSettings) -> str:
    host = inventory.hosts.get(jump.name)
    return (host.node if host else None) or jump.name


def _source_address(address: str) -> str:
    """Our own address on the way there, which to ourselves is that very one; "" where there is no way.

    Connecting a datagram socket sends nothing.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as line:
            line.connect((address, 9))
            return str(line.getsockname()[0])
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
