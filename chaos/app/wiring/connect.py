"""Connects to what an inventory describes: a lab if it is one, the clock, the API server, the hosts."""

# ruff: noqa: PLC0415 - what is slow to import is imported where a cluster is really needed
from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from chaos.core.api_fact import node_path
from chaos.core.errors import NodefallError, Refused, Unreachable, UsageError
from chaos.core.files import path_or_bundled
from chaos.core.inventory import Inventory
from chaos.core.kube import Node
from chaos.core.ports import Clock, KubeApi, MachineAddresses, PowerControl, Session
from chaos.core.power_identity import moved_to
from chaos.engine.connection import OPENSSH, POD, ClusterConnection, login
from chaos.machines.pool import Hosts

if TYPE_CHECKING:
    from chaos.cluster.client import ApiClient
    from chaos.machines.pod.helpers import HelperPods

ENV_INVENTORY = "NODEFALL_INVENTORY"
_log = logging.getLogger(__name__)


@contextmanager
def connect_cluster(inventory: Inventory, *, seed: int | None = None) -> Iterator[ClusterConnection]:
    """Connect for the block. A lab is started before and stopped after it. Raises NodefallError."""
    with ExitStack() as stack:
        pid = None
        if inventory.lab is not None:
            from chaos.app.labs import LabServeOptions, start_lab

            lab = stack.enter_context(start_lab(inventory.lab, seed, LabServeOptions(meanwhile=_import_clients)))
            inventory, pid = with_lab_cluster(inventory, lab.inventory), lab.facts["pid"]
        yield stack.enter_context(_connect(inventory, pid))


def _import_clients() -> None:
    """Import what is slow to import and every command needs as soon as the lab is ready."""
    for name in ("chaos.cluster.client", "chaos.machines.pool", "chaos.app.wiring.connect", "urllib3"):
        import_module(name)


def with_lab_cluster(requested: Inventory, created: Inventory) -> Inventory:
    """The cluster and hosts of a created lab, with the limits and the Prometheus of the requested inventory.

    ``transport: pod`` or ``openssh`` in its defaults is for the hosts with Linux.
    """
    settings: dict[str, object] = {
        "protected": requested.protected,
        "limits": requested.limits,
        "prometheus": requested.prometheus,
    }
    if (transport := requested.defaults.transport) in (POD, OPENSSH):
        update = {"transport": transport, "options": requested.defaults.options}
        settings["defaults"] = created.defaults.model_copy(update=update)
    return created.model_copy(update=settings)


@contextmanager
def _connect(inventory: Inventory, lab_pid: int | None) -> Iterator[ClusterConnection]:
    from chaos.cluster.client import connect
    from chaos.cluster.cluster_state import cluster_uid, server_is_loopback, server_version
    from chaos.core.clock import RemoteClock, SystemClock
    from chaos.machines.pod.helpers import HelperPods

    cluster = inventory.cluster
    if cluster is None:
        raise UsageError("the inventory has no cluster")
    source = cluster.time_source
    clock: RemoteClock | SystemClock = RemoteClock(source.address, source.port) if source else SystemClock()
    with ExitStack() as stack:
        stack.callback(clock.close)
        component_ca = cluster.controller_manager.ca if cluster.controller_manager else None
        kube = connect(cluster.kubeconfig, cluster.context, cluster.kubelet_ca, component_ca)
        uid = cluster_uid(kube)
        if cluster.expect_uid and cluster.expect_uid != uid:
            raise Refused(
                f"wrong cluster: expected UID {cluster.expect_uid}, but the server reports {uid}",
                hint="check cluster.kubeconfig and cluster.context of the inventory",
            )
        if not cluster.expect_uid and not server_is_loopback(kube):
            raise Refused(
                f"unverified cluster: {kube.server} is not on loopback, and the inventory has no expectUID",
                hint=f"if this is the right cluster, add to cluster in the inventory: expectUID: {uid}",
            )
        if cluster.simulated and not server_is_loopback(kube):
            raise Refused(
                f"not a lab: {kube.server} is not on loopback",
                hint="remove cluster.simulated from the inventory: it skips the confirmation before machines go down",
            )
        helpers = HelperPods(kube, clock, cluster.namespace)
        stack.callback(_remove, helpers, clock)
        hosts = _hosts(inventory, kube, clock, helpers)
        stack.callback(hosts.close)
        kube.set_kubelet_certificate_source(partial(kubelet_certificate, kube=kube, hosts=hosts))
        yield ClusterConnection(inventory, clock, kube, hosts, uid, server_version(kube), lab_pid, helpers)


def _remove(helpers: HelperPods, clock: Clock) -> None:
    """Remove the helper pods; what is left is logged: the command has its result already, or why it has none."""
    if not helpers.namespaces:
        return
    try:
        clock.resume()
        for left in helpers.remove():
            _log.warning("%s", left)
    except NodefallError as error:
        _log.warning("helper pods may be left in namespace %s: %s", ", ".join(helpers.namespaces), error)


def _hosts(inventory: Inventory, kube: ApiClient, clock: Clock, helpers: HelperPods | None = None) -> Hosts:
    from chaos.engine.registry import load_facts, load_windows_facts
    from chaos.machines.driver import HostContext, SharedObjects, machine_addresses_of, power_control_of, transport_of
    from chaos.machines.local import SecretContext
    from chaos.machines.pool import Hosts, WindowsFacts
    from chaos.machines.sessions.arming import RetryingSession
    from chaos.machines.sessions.host_keys import HostKeyPins
    from chaos.machines.sessions.settings import LocalUser

    user, secrets = LocalUser(login(), Path.home()), SecretContext(os.environ, Path.home())
    shared, pins = SharedObjects(), HostKeyPins()

    def context(node: str) -> HostContext:
        key, _ = inventory.host_of(node)
        find = (lambda: address(node), partial(node_provider_id, kube, node))
        return HostContext(inventory, key, node, user, secrets, *find, shared, pins.of(node), helpers, kube)

    def address(node: str) -> str:
        return host_address(kube, node, machine_addresses_of(context(node)))

    def session(node: str) -> Session:
        host = context(node)
        try:
            return RetryingSession(transport_of(host).open_session(host), clock)
        except (Unreachable, Refused) as error:
            raise with_move(error, node, host.host.address or "", machine_addresses_of(host)) from error

    def power(node: str) -> PowerControl | None:
        return power_control_of(context(node))

    def is_windows(node: str) -> bool:
        return inventory.host_of(node)[1].os == "windows"

    def crash_tool(node: str) -> str:
        return inventory.host_of(node)[1].crash_tool or ""

    windows = WindowsFacts(is_windows, load_windows_facts, crash_tool)
    return Hosts(session, power, kube, load_facts(), clock, pins, windows)


def has_inventory(option: str | None) -> bool:
    """Whether the option or the environment names an inventory."""
    return bool(option or os.environ.get(ENV_INVENTORY))


def inventory_path(option: str | None) -> Path:
    """The inventory of the option or the environment; there is no default. Raises UsageError."""
    name = option or os.environ.get(ENV_INVENTORY)
    if not name:
        raise UsageError(
            "no inventory: give --inventory FILE",
            hint=f"or set {ENV_INVENTORY}; hosts/lab.yaml is a simulated cluster, and nodefall demo needs none",
        )
    return path_or_bundled(name)


class _Nodes(Struct):
    items: list[Node] = []


def node_address(kube: KubeApi, node: str) -> str:
    """The address of the node's host, read each time as it may change with a restart. Raises Refused.

    A dual-stack node has two addresses of a type: the first is in the IP family that the cluster prefers.
    """
    found = _read_node(kube, node)
    status = found.status if found else None
    by_type = {a.type: a.address for a in reversed((status.addresses if status else None) or ())}
    address = by_type.get("InternalIP") or by_type.get("ExternalIP") or by_type.get("Hostname")
    if not address:
        raise Refused(f"node {node} has no address", hint="set the address of its host in the inventory")
    return address


def node_provider_id(kube: KubeApi, node: str) -> str:
    """The ``spec.providerID`` of the Node, "" without one. Raises NodefallError if the API server does not answer."""
    found = _read_node(kube, node)
    return (found.spec.provider_id if found and found.spec else None) or ""


def _read_node(kube: KubeApi, node: str) -> Node | None:
    response = kube.request("GET", node_path(node))
    return msgspec.json.decode(response.body, type=Node) if response.status == 200 else None


def host_address(kube: KubeApi, node: str, machine: MachineAddresses | None) -> str:
    """The address of the node's host, or that of its container if it has moved. Raises NodefallError.

    A container may have another address after each start, and its former one may be that of another container. The
    Node object shows the new one only when the kubelet has posted it.
    """
    address = node_address(kube, node)
    return moved_to(address, _interfaces(machine)) or address


def with_move(error: NodefallError, node: str, address: str, machine: MachineAddresses | None) -> NodefallError:
    """``error`` of a connection to the ``address`` of the inventory, with the present one if the container moved.

    Without an address in the inventory the machine is not asked: the connection was to the present one.
    """
    new = moved_to(address, _interfaces(machine)) if address else ""
    if not new:
        return error
    return type(error)(
        f"{error.message}; {node} is now at {new}, and the inventory has {address}",
        hint=f"set address of the host to {new}, or remove it: nodefall then reads the current address",
    )


def _interfaces(machine: MachineAddresses | None) -> tuple[str, ...]:
    """Present addresses of a container; none where they are not known."""
    with suppress(NodefallError):
        return machine.interfaces() if machine else ()
    return ()


def kubelet_certificate(address: str, kube: KubeApi, hosts: Hosts) -> str:
    """The self-signed certificate of the kubelet at ``address``, read over a verified session. Raises NodefallError."""
    response = kube.request("GET", "/api/v1/nodes")
    nodes = msgspec.json.decode(response.body, type=_Nodes).items if response.status == 200 else []
    for node in nodes:
        if any(known.address == address for known in (node.status and node.status.addresses) or ()):
            return str(hosts.read(node.metadata.name, "kubelet-certificate"))
    raise NodefallError(f"no node has the address {address}")
