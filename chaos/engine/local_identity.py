"""The identity of this machine, its keys, and the hosts through which it reaches a cluster. They must never become
targets.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from chaos.core.cluster_view import ClusterView
from chaos.core.errors import NodefallError
from chaos.core.inventory import Inventory
from chaos.core.labels import POD_UID_ENV
from chaos.engine.connection import local_machine_id, login
from chaos.engine.observations import LocalIdentity
from chaos.machines.driver import HostContext, SharedObjects, transport_of
from chaos.machines.sessions.settings import HostSettings, LocalUser

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def local_identity(others: Iterable[str]) -> LocalIdentity:
    """The machine ID, boot ID, pod and source addresses of this process. ``others``: where it connects to."""
    addresses = {_source_address(address) for address in others} - {""}
    namespace = _read(_NAMESPACE)
    pod = f"{namespace}/{socket.gethostname()}" if namespace else ""
    return LocalIdentity(local_machine_id(), frozenset(addresses), _read(_BOOT_ID), pod, own_pod_uid())


def own_pod_uid() -> str:
    """The UID of the pod in which this process runs, from the downward API; "" if it is unknown."""
    return os.environ.get(POD_UID_ENV, "")


def own_node(view: ClusterView) -> str:
    """The node of this process's pod; "" if it does not run in a pod of this cluster, or the pod is unknown."""
    uid = own_pod_uid()
    return next((pod.spec.node_name or "" for pod in view.pods if uid and pod.spec and pod.metadata.uid == uid), "")


def server_addresses(url: str) -> frozenset[str]:
    """The addresses of the API server at ``url``, without loopback."""
    return resolve(urlsplit(url).hostname or "")


def jump_hosts(inventory: Inventory, nodes: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """The addresses of all jump hosts to these nodes, by name: a jump host in the inventory has its node name.
    ``nodes``: the address of each Node, because an ssh_config may use it.
    """
    local = LocalUser(login(), Path.home())
    found: dict[str, frozenset[str]] = {}
    for node, address in nodes.items():
        key, _ = inventory.host_of(node)
        context = HostContext(inventory, key, node, local, find_address=partial(str, address))
        for jump in transport_of(context).jump_hosts(context):
            found[_node_of(inventory, jump)] = resolve(jump.address)
    return found


def transport_problems(inventory: Inventory, nodes: Mapping[str, str]) -> dict[str, tuple[NodefallError, ...]]:
    """Problems of this machine that keep the transports from reaching these nodes.

    ``nodes``: the address of each Node.
    """
    local = LocalUser(login(), Path.home())
    found: dict[str, tuple[NodefallError, ...]] = {}
    for node, address in nodes.items():
        key, _ = inventory.host_of(node)
        context = HostContext(inventory, key, node, local, find_address=partial(str, address))
        if (problems := transport_of(context).local_problems(context)) is not None:
            found[node] = tuple(problems)
    return found


def known_host_keys(inventory: Inventory) -> dict[str, frozenset[str]]:
    """The host keys that this machine accepts from each node with a host in the inventory."""
    local, shared = LocalUser(login(), Path.home()), SharedObjects()
    found: dict[str, frozenset[str]] = {}
    for key, host in inventory.hosts.items():
        context = HostContext(inventory, key, host.node or key, local, shared=shared)
        found[context.node] = transport_of(context).known_keys(context)
    return found


def resolve(name: str) -> frozenset[str]:
    """The addresses of a host name, without loopback; none if it cannot be resolved."""
    try:
        found = {str(entry[4][0]).split("%")[0] for entry in socket.getaddrinfo(name, None)} if name else set()
    except OSError:
        return frozenset()
    return frozenset(text for text in found if not ipaddress.ip_address(text).is_loopback)


def _node_of(inventory: Inventory, jump: HostSettings) -> str:
    host = inventory.hosts.get(jump.name)
    return (host.node if host else None) or jump.name


def _source_address(address: str) -> str:
    """The local source address for connections to ``address``; "" if there is no route.

    Connecting a datagram socket sends nothing.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
