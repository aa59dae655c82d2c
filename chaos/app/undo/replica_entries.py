"""Which operations in a replica may be undone: the commands are computed by their actions, never read from the cluster.

Anybody who may write ConfigMaps may have written the replica. An operation is accepted only for a node of the run's
plan that the inventory does not protect, with a state that its action validates.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import msgspec

from chaos.cluster.replica import Authenticity, PendingRun, ReplicaEntry
from chaos.cluster.workload import WorkloadState, namespaces_for, removal
from chaos.core.action import AnyAction, FactCheck, Scope, Undo
from chaos.core.cluster_view import ClusterView
from chaos.core.command import HostCommand, KubeCommand, PodsCommand, PowerCommand, TaintsCommand
from chaos.core.errors import NodefallError
from chaos.core.identity import MACHINE, USER_PREFIX
from chaos.core.inventory import Inventory
from chaos.core.kube import operating_system
from chaos.core.node_mark import Tag
from chaos.core.plan import Plan, PlannedStep
from chaos.core.registry import PluginRegistry
from chaos.core.store.journal_format import PendingUndo
from chaos.engine.planning.identity import IDENTITY_FACTS, identity_checks, node_identity
from chaos.engine.planning.targets import is_protected
from chaos.engine.session import WORKLOAD
from chaos.machines.pod.manifest import HELPER_PODS
from chaos.machines.pod.manifest import removal as pods_removal

_NODE_PREFIX = "/api/v1/nodes/"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RejectedEntry:
    """An operation that is not undone, and why. ``hint``: how this computer could undo it, or ""."""

    entry: ReplicaEntry
    why: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedReplica:
    """The operations of a replica; those that are accepted have the undo that their action computed."""

    accepted: tuple[PendingUndo, ...] = ()
    rejected: tuple[RejectedEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaRules:
    """What is known about the cluster, and how far the replica is trusted. ``plan``: the plan of the run, if
    available.
    """

    registry: PluginRegistry
    inventory: Inventory
    view: ClusterView
    authenticity: Authenticity
    plan: Plan | None = None


class _RejectedError(Exception):
    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.hint = hint


def resolve_replica(replica: PendingRun, rules: ReplicaRules) -> ResolvedReplica:
    """Compute the undo of each operation."""
    accepted: list[PendingUndo] = []
    rejected: list[RejectedEntry] = []
    for entry in sorted(replica.entries, key=lambda entry: entry.id):
        try:
            accepted.append(_resolve(entry, replica, rules))
        except _RejectedError as error:
            rejected.append(RejectedEntry(entry, str(error), error.hint))
    return ResolvedReplica(tuple(accepted), tuple(rejected))


def _resolve(entry: ReplicaEntry, replica: PendingRun, rules: ReplicaRules) -> PendingUndo:
    if rules.authenticity is Authenticity.FORGED:
        raise _RejectedError("the journal is not signed with cluster.journalKey of the inventory")
    if entry.state is None:
        sent = f": {'; '.join(entry.commands)}" if entry.commands else ""
        raise _RejectedError(f"nodefall 0.1 wrote it, with commands, which are never sent from a cluster{sent}")
    if entry.action == WORKLOAD:
        return _pending(entry, _workload_undo(entry, replica))
    if entry.action == HELPER_PODS:
        return _pending(entry, _helper_undo(entry, replica))
    if entry.action not in rules.registry.actions:
        raise _RejectedError(f"the action {entry.action} is not installed here", "install the plug-in that has it")
    action = rules.registry.action_on(entry.action, rules.inventory.host_of(entry.node)[1].os)
    _check_node(entry, action, replica, rules)
    planned = _planned(entry, rules.plan)
    if planned:
        facts = rules.plan.facts.get(entry.node, {}) if rules.plan else {}
        return _pending(entry, planned.undo, identity_checks(facts, planned.undo))
    if action.allowance and rules.authenticity is not Authenticity.SIGNED:
        raise _RejectedError(f"the state of {entry.action} is a program: it must be signed (cluster.journalKey)")
    _check_origin(entry, replica)
    _check_tags(entry, action, replica)
    undo = _compute_undo(entry, action)
    _check_commands(undo, entry.node)
    identity = _identity(entry, rules)
    sends = undo.disarm or any(isinstance(step.command, HostCommand) for step in undo.steps)
    if sends and not identity and rules.authenticity is not Authenticity.SIGNED:
        raise _RejectedError(f"nothing identifies the host of {entry.node}: it may be another machine")
    return _pending(entry, undo, identity)


def _pending(entry: ReplicaEntry, undo: Undo, identity: tuple[FactCheck, ...] = ()) -> PendingUndo:
    return PendingUndo(entry.id, entry.step, entry.action, entry.node, undo, entry.t, identity, entry.state)


def _workload_undo(entry: ReplicaEntry, replica: PendingRun) -> Undo:
    run = replica.identity.run
    if entry.node not in namespaces_for(run):
        raise _RejectedError(f"the namespace {entry.node} is not the one of the run's workload")
    try:
        return removal(msgspec.convert(entry.state, WorkloadState), entry.node, run)
    except (msgspec.ValidationError, ValueError) as error:
        raise _RejectedError(f"invalid state: {error}") from error


def _helper_undo(entry: ReplicaEntry, replica: PendingRun) -> Undo:
    """The run's own pods, in whatever namespace."""
    try:
        return pods_removal(entry.node, replica.identity.run)
    except ValueError as error:
        raise _RejectedError(str(error)) from error


def _check_node(entry: ReplicaEntry, action: AnyAction, replica: PendingRun, rules: ReplicaRules) -> None:
    if (action.scope is Scope.NODE) != bool(entry.node):
        raise _RejectedError(f"{entry.action} acts on {'a node' if action.scope is Scope.NODE else 'the cluster'}")
    if not entry.node:
        return
    if entry.node not in replica.identity.nodes:
        raise _RejectedError(f"{entry.node} is not a node of the run's plan")
    node = rules.view.nodes.get(entry.node)
    if entry.node in rules.inventory.protected.nodes or (node and is_protected(node, rules.view, rules.inventory)):
        raise _RejectedError(f"the inventory protects {entry.node}")
    _check_system(entry.node, action, rules)


def _check_system(node: str, action: AnyAction, rules: ReplicaRules) -> None:
    """The form of the action, as facts and failsafe timers, is that of the inventory; the Node is anyone's text."""
    system, known = rules.inventory.host_of(node)[1].os, rules.view.nodes.get(node)
    if action.on_host and known and (reported := operating_system(known)) != system:
        why = f"{node} runs {reported}, and its host in the inventory has os {system}"
        raise _RejectedError(why, f"set os: {reported} for its host, if that is what runs on it")


def _planned(entry: ReplicaEntry, plan: Plan | None) -> PlannedStep | None:
    """The step of the plan, None without a plan."""
    if plan is None:
        return None
    for planned in plan.steps:
        if (planned.step, planned.action, planned.node) == (entry.step, entry.action, entry.node):
            if planned.undo_state != entry.state:
                raise _RejectedError("its state is not that of the run's plan")
            return planned
    raise _RejectedError("the run's plan has no such step")


def _check_origin(entry: ReplicaEntry, replica: PendingRun) -> None:
    """The undo removes the mark of the step on its Node, not another run's."""
    origin = (entry.state or {}).get("origin")
    if origin is not None and origin != {"run": replica.identity.run, "step": entry.step}:
        raise _RejectedError(f"its state is about another step: {origin}")


def _check_tags(entry: ReplicaEntry, action: AnyAction, replica: PendingRun) -> None:
    """The undo stops the timer of the step and deletes what the step made, not what another run's did."""
    own = f"{replica.identity.run}-{entry.step}"
    for field in msgspec.structs.fields(action.state):
        if field.type == Tag and (tag := (entry.state or {}).get(field.name, own)) != own:
            raise _RejectedError(f"its state is about another step: {tag}")


def _compute_undo(entry: ReplicaEntry, action: AnyAction) -> Undo:
    try:
        return action.program(action.decode_state(entry.state or {})).undo
    except (msgspec.ValidationError, NodefallError) as error:
        raise _RejectedError(f"invalid state: {error}") from error
    except Exception as error:  # the state is anyone's text, and the action may be another distribution's
        _log.exception("undo of %s could not be computed", entry.action)
        raise _RejectedError(f"invalid state: {type(error).__name__}: {error}") from error


def _check_commands(undo: Undo, node: str) -> None:
    """Whatever the state says, nothing goes to another node."""
    for step in undo.steps:
        command = step.command
        other = ""
        if isinstance(command, KubeCommand) and node and command.path.startswith(_NODE_PREFIX):
            other = command.path.removeprefix(_NODE_PREFIX).partition("/")[0].partition("?")[0]
        elif isinstance(command, TaintsCommand):
            other = command.node
        elif isinstance(command, PodsCommand):
            other = command.pods.node or node
        elif isinstance(command, HostCommand | PowerCommand) and not node:
            raise _RejectedError(f"a step on the cluster sends nothing to a host: {command}")
        if other and other != node:
            raise _RejectedError(f"its state is about another node: {other}")


def _identity(entry: ReplicaEntry, rules: ReplicaRules) -> tuple[FactCheck, ...]:
    """The recorded checks that the host is the node; of a replica that is not signed, also what the Node reports.

    That is its machine ID. Of a host that is recorded by another stable ID, as containers are, it need not last over a
    boot: there it is the Node's name, in the kubelet's certificate.
    """
    for check in entry.identity:
        if check.fact not in IDENTITY_FACTS:
            raise _RejectedError(f"{check.fact} does not identify a host")
    node = rules.view.nodes.get(entry.node)
    if node is None or rules.authenticity is Authenticity.SIGNED:
        return entry.identity
    recorded = next((str(check.value) for check in entry.identity if check.fact == "stable-id"), "")
    machine_id = node_identity(node).machine_id
    if recorded.startswith(("container ", "system ")):
        reported = FactCheck("kubelet-user", f"{USER_PREFIX}{entry.node}")
    elif recorded:
        reported = FactCheck("stable-id", f"{MACHINE}{machine_id}" if machine_id else "")
    else:
        reported = FactCheck("machine-id", machine_id)
    return entry.identity if reported in entry.identity or not reported.value else (*entry.identity, reported)
