"""Node IPAM controller: a range of addresses for the pods of each node, with --allocate-node-cidrs."""

from __future__ import annotations

from ipaddress import ip_network

from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change
from chaos.lab.objects import Object, name_of
from chaos.lab.sim import SimClock

_CLUSTER_CIDR = "10.244.0.0/16"
_MASK_SIZE = 24  # --node-cidr-mask-size


class NodeIpam:
    """Assigns the lowest free range to each new Node. pkg/controller/nodeipam/ipam/range_allocator.go."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._store, self._rules = sim, registry.store, registry.rules.node_lifecycle

    def start(self) -> None:
        """Watch the Nodes, if the flag is set."""
        if self._rules.allocate_node_cidrs:
            self._store.subscribe(self._on_change, "nodes")

    def _on_change(self, change: Change) -> None:
        if change.type == "ADDED":
            delay = self._rules.cidr_allocation_delay + self._sim.rng.uniform(0.005, 0.02)
            self._sim.after(delay, self._allocate, name_of(change.object))

    def _allocate(self, name: str) -> None:
        used = {node["spec"].get("podCIDR") for node in self._store.list("nodes")} - {None}
        if self._rules.shares_node_cidrs:
            used = set()
        ranges = map(str, ip_network(_CLUSTER_CIDR).subnets(new_prefix=_MASK_SIZE))
        free = next(item for item in ranges if item not in used)

        def change(node: Object) -> None:
            node["spec"] |= {"podCIDR": free, "podCIDRs": [free]}

        self._store.patch("nodes", "", name, change)
