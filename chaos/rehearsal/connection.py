"""A new simulated cluster in this process, the connection to it, and its clock: sleeping moves the simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from chaos.app.wiring.connect import with_lab_cluster
from chaos.cluster.cluster_state import cluster_uid, server_version
from chaos.core.inventory import Defaults, Inventory
from chaos.core.labels import LOCK_NAMESPACE
from chaos.core.ports import PowerControl, Session
from chaos.engine.connection import POD, ClusterConnection
from chaos.engine.registry import load_facts, load_windows_facts
from chaos.lab.facade import DirectLab, LabSpec, SimClock
from chaos.machines.driver import SharedObjects
from chaos.machines.pod.helpers import HelperPods
from chaos.machines.pod.manifest import PodOptions
from chaos.machines.pod.session import HelperSlot
from chaos.machines.pool import Hosts, WindowsFacts
from chaos.machines.power.docker import DockerControl
from chaos.machines.sessions.arming import RetryingSession
from chaos.machines.sessions.host_keys import HostKeyPins
from chaos.rehearsal.hosts import DirectContainer, DirectContainerSession, DirectPodSession, DirectPower, DirectSession
from chaos.rehearsal.kube import CONTROLLERS, DirectKube
from chaos.rehearsal.turns import Turns


class RehearsalClock:
    """Implements ``chaos.core.ports.Clock``. Times are whole microseconds, as those of a lab's time source."""

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self.threads = Turns(sim)
        self._is_woken = False

    def now(self) -> float:
        return round(self._sim.now, 6)

    def sleep(self, seconds: float) -> bool:
        """Sleep ``seconds``; False if :meth:`wake` ended the sleep early."""
        if self._is_woken:
            self.threads.give_way()
            return False
        if seconds > 0:
            self.threads.block(math.ceil((self._sim.now + seconds) * 1e6) / 1e6, can_be_woken=True)
        return not self._is_woken

    def gather(self) -> None:
        """No-op: nothing arrives while a thread has its turn."""

    def settle(self) -> bool:
        """No-op: time does not move while a thread has its turn, and ``threads.wait`` gives the others theirs."""
        return False

    def wake(self) -> None:
        self._is_woken = True
        self.threads.wake()

    def resume(self) -> None:
        self._is_woken = False

    @contextmanager
    def participant(self) -> Iterator[None]:
        """No-op: time never moves while a thread has its turn."""
        yield

    def close(self) -> None:
        """End all threads but the calling one."""
        self.threads.close()


Populate = Callable[[DirectLab], None]
DOCKER = "docker"  # the transport that a rehearsal has besides SSH and pods: hosts and power control as containers


def leave_empty(_: DirectLab) -> None:
    """Create nothing."""


def _crash_tool(_: str) -> str:
    from chaos.lab.facade import CRASH_TOOL  # noqa: PLC0415 - it imports all of Windows

    return CRASH_TOOL


@dataclass(frozen=True, slots=True)
class DirectConnection:
    """The lab, which is still to be observed, and the ports to it."""

    lab: DirectLab
    ports: ClusterConnection


@contextmanager
def connect_directly(
    spec: LabSpec, settings: Inventory | None, populate: Populate = leave_empty
) -> Iterator[DirectConnection]:
    """Start a lab for the block.

    ``settings``: the inventory whose limits and protected nodes apply. ``populate`` creates what runs on the cluster.
    """
    lab = DirectLab(spec)
    lab.start()
    populate(lab)
    with connect_to(lab, settings) as connection:
        yield connection


@contextmanager
def connect_to(lab: DirectLab, settings: Inventory | None) -> Iterator[DirectConnection]:
    """Connect to a lab that has started, for the block; ``settings`` as of :func:`connect_directly`."""
    spec, clock = lab.cluster.spec, RehearsalClock(lab.sim)
    try:
        turns, pins = clock.threads, HostKeyPins()
        kube = DirectKube(lab, turns)

        inventory, uid = lab_inventory(spec, settings), cluster_uid(kube)
        helpers, slots = HelperPods(kube, clock, LOCK_NAMESPACE), SharedObjects()

        def open_session(node: str) -> Session:
            host, pin = lab.hosts[node], pins.of(node)
            if inventory.defaults.transport != POD or is_windows(node):
                kind = DirectContainerSession if is_container(node) else DirectSession
                session = kind(host, pin, turns, clock.now)
                session.connect()
                return RetryingSession(session, clock)
            options = PodOptions.model_validate(inventory.defaults.options)
            slot = slots.get(node, lambda: HelperSlot(node, helpers, options))
            return RetryingSession(DirectPodSession(lab, slot, pin, turns, clock.now), clock)

        def is_windows(node: str) -> bool:
            return inventory.host_of(node)[1].os == "windows"

        def is_container(node: str) -> bool:
            return inventory.defaults.transport == DOCKER and not is_windows(node)

        def open_power(node: str) -> PowerControl:
            return DockerControl(DirectContainer(lab, node)) if is_container(node) else DirectPower(lab, node)

        windows = WindowsFacts(is_windows, load_windows_facts, _crash_tool)
        hosts = Hosts(open_session, open_power, kube, load_facts(), clock, pins, windows)
        yield DirectConnection(
            lab, ClusterConnection(inventory, clock, kube, hosts, uid, server_version(kube), None, helpers)
        )
    finally:
        clock.close()


def lab_inventory(spec: LabSpec, settings: Inventory | None) -> Inventory:
    """One host for each node of the lab; ``settings`` has the limits and the protected nodes."""
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "rehearsal"},
        "cluster": {
            "kubeconfig": "rehearsal",
            "simulated": True,
            "controllerManager": {"urls": [CONTROLLERS]},
        },
        "hosts": {node.name: {"node": node.name, "address": "127.0.0.1", "os": node.os} for node in spec.nodes},
    }
    inventory = Inventory.model_validate(document)
    if settings and settings.defaults.transport == DOCKER:
        inventory = inventory.model_copy(update={"defaults": Defaults(transport=DOCKER)})
    return with_lab_cluster(settings, inventory) if settings else inventory
