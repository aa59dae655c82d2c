"""The simulated cluster: machines, control plane and store, driven by one simulated clock."""

from __future__ import annotations

from chaos.lab.apiserver.events import EventTtl
from chaos.lab.apiserver.eviction import Evictions
from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Store
from chaos.lab.controllers import Controllers
from chaos.lab.node.etcd import CONTAINER, EtcdCluster
from chaos.lab.node.machine import Machine
from chaos.lab.node.network import addresses_of
from chaos.lab.objects import Object
from chaos.lab.sim import SimClock
from chaos.lab.spec import LabSpec, NodeSpec

_WARM_UP = 1.0  # simulated seconds in which the cluster settles before it is used
_ETCD_START = 10.0


class Cluster:
    """One cluster, driven only by its owner's calls of ``sim.run_until``."""

    def __init__(self, spec: LabSpec) -> None:
        spec.check()
        self.spec = spec
        self.sim = SimClock(spec.start, spec.seed)
        self.store = Store(self.sim)
        rules = spec.rules()
        self.registry = Registry(self.sim, self.store, spec, rules)
        self._event_ttl = EventTtl(self.sim, self.store, rules.api_server.event_ttl)
        self._evictions = Evictions(self.sim, self.registry)
        addresses = {node.name: addresses_of(index) for index, node in enumerate(spec.nodes)}
        self.machines = {
            node.name: _machine_class(node)(self.sim, self.registry, spec, index, addresses)
            for index, node in enumerate(spec.nodes)
        }
        self.etcd = self._make_etcd()
        self.controllers = Controllers(self._controllers_clock(), self.registry)

    def _make_etcd(self) -> EtcdCluster:
        """The members of etcd, which notice at once when a machine goes down."""
        members = [m for m in self.machines.values() if any(pod.name == CONTAINER for pod in m.spec.static_pods)]
        etcd = EtcdCluster(self.sim, self.spec.seed, {machine.name: machine.runtime for machine in members})
        for machine in self.machines.values() if members else ():
            machine.etcd = etcd
            machine.network.server_ready_at = etcd.ready_at
        for machine in members:
            machine.on_change.append(etcd.on_machine_change)
        return etcd

    def _controllers_clock(self) -> SimClock:
        return self.sim

    def start(self) -> None:
        """Create the namespaces, start the control plane, boot every machine. Nodes are Ready within 1 s."""
        for name in self.spec.namespaces:
            self.registry.create("namespaces", {"metadata": {"name": name}})
        for name, value in self.registry.rules.api_server.priority_classes.items():
            self.registry.create("priorityclasses", {"metadata": {"name": name}, "value": value})
        self.controllers.start()
        self._event_ttl.start()
        for machine in self.machines.values():
            machine.boot_at_once()
            machine.kubelet.start()

    def warm_up(self) -> None:
        """Let time pass after the start: nodes become Ready, and members of etcd run."""
        self.sim.run_until(self.sim.now + _WARM_UP)
        end = self.sim.now + _ETCD_START
        while self.etcd.members and not self.etcd.leader() and self.sim.now < end:
            self.sim.run_until(self.sim.now + _WARM_UP)

    def create_object(self, plural: str, obj: Object) -> Object:
        """Create an object as a client does. Raises InvalidError, ForbiddenError, NotFoundError, ConflictError."""
        return self.registry.create(plural, obj)

    def update_object(self, plural: str, obj: Object, subresource: str = "", expect: str | None = None) -> Object:
        """Replace an object, if it is at resourceVersion ``expect``, as a client does. Raises as Registry.update."""
        return self.registry.update(plural, obj, subresource, expect)

    def delete_object(
        self, plural: str, namespace: str, name: str, grace: int | None = None, preconditions: Object | None = None
    ) -> Object:
        """Delete an object as a client does and return its last state. Raises NotFoundError, ConflictError."""
        return self.registry.delete(plural, namespace, name, grace, preconditions)

    def evict_pod(self, namespace: str, name: str, options: Object | None = None, dry_run: bool = False) -> None:
        """POST to the pod's eviction subresource, with DeleteOptions. Raises as Evictions.evict."""
        self._evictions.evict(namespace, name, options, dry_run)


def _machine_class(node: NodeSpec) -> type[Machine]:
    """Class by operating system. The code of Windows is imported only for a lab that has such a node."""
    if node.os == "linux":
        return Machine
    from chaos.lab.windows.machine import WindowsMachine  # noqa: PLC0415

    return WindowsMachine
