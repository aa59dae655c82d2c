"""The changes of nodes that the run itself made, according to its recorded steps and their undos.

The changes that an action may make are derived from its declarations. All other changes were made by others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from chaos.core.action import Scope
from chaos.core.binding import BoundStep
from chaos.core.command import PowerCommand, PowerVerb
from chaos.core.permission import Permission
from chaos.core.recording import ActionPhase, ActionRecord
from chaos.core.registry import PluginRegistry
from chaos.core.timeline import Entry, Timeline

LATE = 10.0  # seconds after the return of an operation in which its effect is received
CUT_AHEAD = 60.0  # seconds before a reboot by the power control begins, that is powers on, in which it powers off


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
    """The changes that a step can make. All kinds, if its action or a parameter is unknown."""
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
    """The node that a step changes, or "". A step on the cluster may name the node in its parameters."""
    if bound is None or bound.action.scope is Scope.NODE:
        return node
    return str(getattr(bound.params, "node", ""))


def _core(permissions: tuple[Permission, ...]) -> tuple[Permission, ...]:
    return tuple(p for p in permissions if p.group == "")


@dataclass(frozen=True, slots=True)
class OwnOperation:
    """A step on a node, or its undo; ``end`` is infinite before it has returned. ``boots``: one boot follows.

    ``cuts_ahead``: it takes the machine down by powering it on, so it has powered it off before its start.
    """

    key: tuple[str, str, str, bool]  # node of the entry, step, action, whether it is an undo
    node: str
    begin: float
    end: float
    changes: frozenset[NodeChange]
    boots: bool
    cuts_ahead: bool


class OwnChanges:
    """All operations in a timeline, including operations that are not steps of the experiment."""

    def __init__(self, timeline: Timeline, registry: PluginRegistry) -> None:
        self._operations = _operations(timeline, registry)
        self.nodes = frozenset(operation.node for operation in self._operations)
        self.is_recorded_by_us = bool(timeline.meta.get("nodefall"))

    def began(self, node: str, change: NodeChange, t: float) -> bool:
        """Whether an operation that makes such a change began on the node before ``t``."""
        return any(o.begin <= t for o in self._of(node, change))

    def began_any(self, node: str, t: float) -> bool:
        """Whether any operation began on the node before ``t``."""
        return any(o.node == node and o.begin <= t for o in self._operations)

    def overlaps(self, node: str, change: NodeChange, since: float, t: float) -> bool:
        """Whether an operation that makes such a change was under way at some moment of [since, t]."""
        return any(o.begin <= t and since <= o.end + LATE for o in self._of(node, change))

    def explains_everything(self, node: str, t: float) -> bool:
        """Whether an operation whose changes are not known began on the node before ``t``."""
        return any(o.begin <= t and o.changes == EVERYTHING for o in self._of(node, NodeChange.SOFTWARE))

    def unexplained_boots(self, node: str, boots: Sequence[float]) -> list[float]:
        """The boots (in order of time) that no operation explains. Each explains one."""
        pending = sorted(self._of(node, NodeChange.BOOT), key=lambda o: o.begin)
        explained, found = 0, []
        for t in boots:
            while pending and pending[0].begin <= t:
                explained = explained + 1 if pending.pop(0).boots else max(explained, 1)
            if not explained:
                found.append(t)
            explained = max(0, explained - 1)
        return found

    def explains_power_off(self, node: str, t: float, last_on: float, earlier: Sequence[float]) -> bool:
        """Whether the machine, last seen on at ``last_on``, went off by ``t`` because of an operation.

        ``earlier`` are the times of its power-offs before. A shutdown takes a while: the undo of a run that was aborted
        meanwhile begins before the machine is off.
        """
        own = list(self._of(node, NodeChange.BOOT))
        for o in own:
            since = o.begin - CUT_AHEAD
            if o.cuts_ahead and since <= t < o.begin and not any(off >= since for off in earlier):
                return True
        before = [o for o in own if o.begin <= t]
        if not before:
            return False
        last = max(before, key=lambda o: o.begin)
        if last.boots or last_on <= last.begin:  # else it was on after the last repair began
            return True
        down = max((o.begin for o in before if o.boots), default=math.inf)
        return t <= last.end and down <= t and not any(off >= down for off in earlier)

    def _of(self, node: str, change: NodeChange) -> Iterator[OwnOperation]:
        return (o for o in self._operations if o.node == node and change in o.changes)


def _operations(timeline: Timeline, registry: PluginRegistry) -> list[OwnOperation]:
    found: list[OwnOperation] = []
    for entry, record in timeline.actions:
        if record.phase in (ActionPhase.BEGIN, ActionPhase.UNDO):
            found.append(_begin(entry, record, registry))
        elif record.phase in (ActionPhase.RETURNED, ActionPhase.UNDONE):
            _end(found, entry, record)
    return found


def _begin(entry: Entry, record: ActionRecord, registry: PluginRegistry) -> OwnOperation:
    action, bound = registry.actions.get(entry.type), registry.bind_recorded(entry.type, record.params)
    is_undo = record.phase == ActionPhase.UNDO
    boots = bool(action and action.takes_down and not is_undo)
    return OwnOperation(
        key=(entry.node, record.step, entry.type, is_undo),
        node=changed_node(bound, entry.node),
        begin=entry.t,
        end=math.inf,
        changes=node_changes(bound),
        boots=boots,
        cuts_ahead=boots and record.command == str(PowerCommand(PowerVerb.ON)),
    )


def _end(found: list[OwnOperation], entry: Entry, record: ActionRecord) -> None:
    """Set the end of the operation that has returned: the last open one."""
    key = (entry.node, record.step, entry.type, record.phase == ActionPhase.UNDONE)
    for index in reversed(range(len(found))):
        if found[index].key == key and found[index].end == math.inf:
            found[index] = replace(found[index], end=entry.t)
            return
