"""Opening what an inventory describes: the lab if it is one, the clock, the API server, the hosts."""

# ruff: noqa: PLC0415 - what is slow to import is imported where a cluster is really needed
from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.model.errors import Exit, NodefallError, Refused, UsageError
from chaos.model.inventory import Inventory
from chaos.model.ports import Clock, PowerControl, Session

if TYPE_CHECKING:
    from chaos.clock import RemoteClock, SystemClock
    from chaos.hosts.pool import Hosts
    from chaos.kube.client import ApiClient

ENV_INVENTORY = "NODEFALL_INVENTORY"
MACHINE_ID = Path("/etc/machine-id")


@dataclass(frozen=True, slots=True)
class ClusterConnection:
    """An open cluster. ``lab_pid`` is set where a lab was started for it."""

    inventory: Inventory
    clock: SystemClock | RemoteClock
    kube: ApiClient
    hosts: Hosts
    uid: str
    version: str
    lab_pid: int | None = None


@contextmanager
def refuse_before_side_effects() -> Iterator[None]:
    """What fails before anything was touched is refused, whatever it was."""
    try:
        yield
    except NodefallError as error:
        if error.code is not Exit.INCONCLUSIVE:
            raise
        raise Refused(error.message, hint=error.hint) from error


@contextmanager
def connect_cluster(inventory: Inventory, *, seed: int | None = None) -> Iterator[ClusterConnection]:
    """Open a cluster, and close it after use; a lab is started for it and stopped again."""
    with ExitStack() as stack:
        pid = None
        if inventory.lab is not None:
            from chaos.app.labs import start_lab

            lab = stack.enter_context(start_lab(inventory.lab, seed))
            inventory, pid = with_lab_cluster(inventory, lab.inventory), lab.facts["pid"]
        yield stack.enter_context(_connect(inventory, pid))


def with_lab_cluster(asked: Inventory, made: Inventory) -> Inventory:
    """The lab's cluster and hosts, with the limits and the Prometheus that were asked for."""
    kept = {"protected": asked.protected, "limits": asked.limits, "prometheus": asked.prometheus}
    return made.model_copy(update=kept)


@contextmanager
def _connect(inventory: Inventory, lab_pid: int | None) -> Iterator[ClusterConnection]:
    from chaos.app.nodes import kubelet_certificate
    from chaos.clock import RemoteClock, SystemClock
    from chaos.kube.client import cluster_uid, connect, server_is_loopback, server_version

    cluster = inventory.cluster
    if cluster is None:
        raise UsageError("the inventory has no cluster")
    source = cluster.time_source
    clock = RemoteClock(source.address, source.port) if source else SystemClock()
    with ExitStack() as stack:
        stack.callback(clock.close)
        component_ca = cluster.controller_manager.ca if cluster.controller_manager else None
        kube = connect(cluster.kubeconfig, cluster.context, cluster.kubelet_ca, component_ca)
        uid = cluster_uid(kube)
        if cluster.expect_uid and cluster.expect_uid != uid:
            raise Refused(
                f"this is another cluster: expectUID is {cluster.expect_uid}, its own is {uid}",
                hint="see cluster.kubeconfig and cluster.context of the inventory",
            )
        if not cluster.expect_uid and not server_is_loopback(kube):
            raise Refused(
                f"{kube.server} is not on loopback, and the inventory does not say which cluster it is",
                hint=f"if it is the one you mean, add to cluster in the inventory: expectUID: {uid}",
            )
        if cluster.simulated and not server_is_loopback(kube):
            raise Refused(
                f"{kube.server} is not on loopback, so it is no lab",
                hint="remove cluster.simulated from the inventory: nobody would be asked before machines go down",
            )
        hosts = _hosts(inventory, kube, clock)
        stack.callback(hosts.close)
        kube.set_kubelet_certificate_source(partial(kubelet_certificate, kube=kube, hosts=hosts))
        yield ClusterConnection(inventory, clock, kube, hosts, uid, server_version(kube), lab_pid)


def _hosts(inventory: Inventory, kube: ApiClient, clock: Clock) -> Hosts:
    import chaos.facts
    from chaos.app.nodes import node_address
    from chaos.hosts.pool import Hosts
    from chaos.hosts.power.factory import make_power_control
    from chaos.hosts.power.secrets import SecretContext
    from chaos.hosts.transports.containers import Container, find_engine
    from chaos.hosts.transports.docker import DockerSession
    from chaos.hosts.transports.retry import RetryingSession
    from chaos.hosts.transports.settings import LocalUser, host_settings
    from chaos.hosts.transports.ssh import open_session
    from chaos.model.registry import discover

    local = LocalUser(login(), Path.home())

    @cache
    def container(name: str, engine: str | None) -> Container:
        """One for all, as it remembers which container it is."""
        return Container(name, find_engine(engine))

    def session(node: str) -> Session:
        key, host = inventory.host_of(node)
        if (host.transport or inventory.defaults.transport) == "docker":
            engine = host.engine or inventory.defaults.engine
            return RetryingSession(DockerSession(container(host.container or node, engine)), clock)
        address = "" if host.address else node_address(kube, node)
        return RetryingSession(open_session(host_settings(inventory, key, local, address)), clock)

    def power(node: str) -> PowerControl | None:
        key, host = inventory.host_of(node)
        if host.power is None:
            return None
        default = host.container or node
        return make_power_control(
            host.power,
            key,
            SecretContext(os.environ, Path.home()),
            lambda name, engine: container(name or default, engine),
        )

    return Hosts(session, power, kube, discover(chaos.facts, "FACT"), clock)


def login() -> str:
    """The login user of this machine; a user ID without a name, as containers have, is given as a number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def inventory_path(option: str | None) -> Path:
    """The inventory that was asked for: there is no ambient cluster. Raises UsageError."""
    name = option or os.environ.get(ENV_INVENTORY)
    if not name:
        raise UsageError(
            "no inventory: say which cluster with --inventory FILE",
            hint=f"or set {ENV_INVENTORY}; hosts/lab.yaml is a simulated cluster, and nodefall demo needs none",
        )
    return Path(name)


def local_machine_id() -> str:
    """The ID of the machine that nodefall runs on, "" where there is none."""
    try:
        return MACHINE_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
