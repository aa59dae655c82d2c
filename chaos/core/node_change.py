"""What an action may change of its node, derived from its declarations. Other changes are those of others."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ValidationError

from chaos.core.action import AnyAction, Scope
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


def node_changes(action: AnyAction | None, params: Mapping[str, Any]) -> frozenset[NodeChange]:
    """The changes that an action makes with these parameters; everything if it, or a parameter, is not known."""
    model = _parse(action, params)
    if action is None or action.allowance or model is None:
        return EVERYTHING
    needs = action.needs_with(model)
    changes = {_BY_PERMISSION.get((p.resource, p.verb)) for p in _core(needs.permissions)} - {None}
    if action.takes_down or action.powers_on or action.may_crash:
        changes |= {NodeChange.BOOT}
    if action.takes_down or needs.logind:
        changes |= {NodeChange.SHUTDOWN}
    if action.on_host:
        changes |= {NodeChange.REPORTING}
    return frozenset(change for change in changes if change)


def changed_node(action: AnyAction | None, node: str, params: Mapping[str, Any]) -> str:
    """The node that a step changes; "" if there is none. One on the cluster may name it in its parameters."""
    if action is None or action.scope is Scope.NODE:
        return node
    return str(getattr(_parse(action, params), "node", ""))


def _core(permissions: tuple[Permission, ...]) -> tuple[Permission, ...]:
    return tuple(p for p in permissions if p.group == "")


def _parse(action: AnyAction | None, params: Mapping[str, Any]) -> BaseModel | None:
    """The parameters; None if another recorder wrote other ones."""
    try:
        return action.params.model_validate(params) if action else None
    except ValidationError:
        return None
