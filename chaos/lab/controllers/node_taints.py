"""Taints of the node lifecycle controller. Facts 5.4."""

from __future__ import annotations

from chaos.lab.apiserver.registry import Registry
from chaos.lab.objects.accessors import (
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    Object,
    condition_status,
    has_taint,
    taints_of,
)
from chaos.lab.sim.clock import SimClock

_PRESSURE = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OWNED_KEYS = {NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURE.values()}
_READY = {"False": NOT_READY, "Unknown": UNREACHABLE}


def desired_no_schedule(node: Object) -> set[str]:
    """Keys of the NoSchedule taints for the node's conditions and spec."""
    keys = {key for type_, key in _PRESSURE.items() if condition_status(node, type_) == "True"}
    if (ready := condition_status(node, "Ready")) in _READY:
        keys.add(_READY[ready])
    if node["spec"].get("unschedulable"):
        keys.add(UNSCHEDULABLE)
    return keys


def may_remove_no_execute(node: Object) -> bool:
    """Whether :meth:`NodeTaints.remove_no_execute` changes the node."""
    return "taints" in node["spec"] and (
        not taints_of(node) or has_taint(node, NOT_READY, "NoExecute") or has_taint(node, UNREACHABLE, "NoExecute")
    )


class NodeTaints:
    """Adds and removes taints in separate writes, as SwapNodeControllerTaint."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._store = sim, registry.store
        self._adds_no_schedule = not registry.spec.has_breakage("no-schedule-taint-missing")

    def sync_no_schedule(self, name: str, desired: set[str] | None = None) -> None:
        """Sync the NoSchedule taints with the node's conditions, or with ``desired`` from earlier conditions."""
        node = self._store.get("nodes", "", name)
        if node is None:
            return
        desired = desired_no_schedule(node) if desired is None else desired
        current = {taint["key"] for taint in taints_of(node) if taint["effect"] == "NoSchedule"} & _OWNED_KEYS
        if self._adds_no_schedule:
            self._add(name, "NoSchedule", sorted(desired - current))
        self._sim.after(self._sim.rng.uniform(0.002, 0.01), self._remove, name, "NoSchedule", current - desired)

    def swap_no_execute(self, name: str, desired: str, other: str) -> None:
        """Add the taint ``desired``, then remove ``other`` if the node has it."""
        self._add(name, "NoExecute", [desired])
        node = self._store.get("nodes", "", name)
        if node is not None and has_taint(node, other, "NoExecute"):
            self._sim.after(self._sim.rng.uniform(0.002, 0.01), self._remove, name, "NoExecute", {other})

    def remove_no_execute(self, name: str) -> None:
        """Remove the NoExecute taints: the node is Ready, or evictions are stopped."""
        self._remove(name, "NoExecute", {NOT_READY, UNREACHABLE})

    def _add(self, name: str, effect: str, keys: list[str]) -> None:
        def change(node: Object) -> None:
            taints = node["spec"].setdefault("taints", [])
            for key in keys:
                if not has_taint(node, key, effect):
                    taints.append({"key": key, "effect": effect, "timeAdded": self._sim.timestamp()})

        if keys:
            self._store.patch("nodes", "", name, change)

    def _remove(self, name: str, effect: str, keys: set[str]) -> None:
        node = self._store.get("nodes", "", name)
        if node is None or not keys or "taints" not in node["spec"]:
            return
        remaining = [t for t in taints_of(node) if not (t["effect"] == effect and t["key"] in keys)]
        if remaining and len(remaining) == len(taints_of(node)):
            return

        def change(node: Object) -> None:
            if remaining:
                node["spec"]["taints"] = remaining
            else:
                del node["spec"]["taints"]

        self._store.patch("nodes", "", name, change)
