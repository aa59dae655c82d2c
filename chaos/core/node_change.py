"""What an action may change of its node, derived from its declarations. Other changes are those of others."""

from __future__ import annotations

from enum import StrEnum

from chaos.core.action import Scope
from chaos.core.binding import BoundStep
from chaos.core.permission import Permission


class NodeChange(StrEnum):
    """A kind of change. An action with commands of the user may make any of them."""

    SPEC = "spec"  # unschedulable and taints
    OBJECT = "object"  # the Node object is created or deleted
    BOOT = "boot"  # the machine goes off, and boots
    SHUTDOWN = "shutdown"  # the kubelet announces a shutdown
    REPORTING = "reporting"  # the kubelet stops reporting
    EVICTIONS = "evictions"  # pods get the condition of an eviction through the API
    SOFTWARE = "software"  # versions of kubelet, kernel and operating system


EVERYTHING = frozenset(NodeChange)
_BY_PERMISSION = {
    ("nodes", "patch"): NodeChange.SPEC,
    ("nodes", "create"): NodeChange.OBJECT,
    ("nodes", "delete"): NodeChange.OBJECT,
    ("pods/eviction", "create"): NodeChange.EVICTIONS,
    ("pods/status", "patch"): NodeChange.EVICTIONS,
}


def node_changes(bound: BoundStep | None) -> frozenset[NodeChange]:
    """The changes that a step makes; everything if its action, or a parameter, is not known."""
    if bound is None or bound.action.allowance:
        return EVERYTHING
    action, needs = bound.action, bound.needs_on("linux")
    changes = {_BY_PERMISSION.get((p.resource, p.verb)) for p in _core(needs.permissions)} - {None}
    if action.takes_down or action.powers_on or action.may_crash:
        changes |= {NodeChange.BOOT}
    if action.takes_down or needs.logind:
        changes |= {NodeChange.SHUTDOWN}
    if action.on_host:
        changes |= {NodeChange.REPORTING}
    return frozenset(change for change in changes if change)


def changed_node(bound: BoundStep | None, node: str) -> str:
    """The node that a step changes; "" if there is none. One on the cluster may name it in its parameters."""
    if bound is None or bound.action.scope is Scope.NODE:
        return node
    return str(getattr(bound.params, "node", ""))


def _core(permissions: tuple[Permission, ...]) -> tuple[Permission, ...]:
    return tuple(p for p in permissions if p.group == "")
