"""Identities of nodes and hosts at planning time, and the checks that a plan and its undo repeat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chaos.core.action import FactCheck, Undo
from chaos.core.api_fact import PseudoFact
from chaos.core.cluster_view import node_addresses, normalize_addresses
from chaos.core.command import Command, HostCommand, PowerCommand
from chaos.core.identity import MACHINE, HostIdentity, NodeIdentity
from chaos.core.kube import Node

# Facts from which HostIdentity is made. The boot ID, and on some hosts the machine ID, are others after each boot.
HOST_FACTS = ("machine-id", "stable-id", "system-uuid", "boot-id", "host-addresses", "kubelet-user", "kubelet-flags")
# The certificate differs between clones, and so may the UUID of the firmware.
_CHECKED = ("kubelet-user", "system-uuid")
# Facts of identity checks: all of them are the same after a boot. 0.2.0 recorded the machine ID.
IDENTITY_FACTS = frozenset({"stable-id", "machine-id", *_CHECKED, PseudoFact.HOST_KEY, PseudoFact.POWER_IDENTITY})


def node_identity(node: Node) -> NodeIdentity:
    """Identity of a Node as its kubelet and its cloud's controller reported it."""
    info = node.status.node_info if node.status else None
    return NodeIdentity(
        name=node.metadata.name,
        machine_id=info.machine_id if info else "",
        system_uuid=info.system_uuid if info else "",
        boot_id=info.boot_id if info else "",
        addresses=tuple(sorted(node_addresses(node))),
        provider_id=(node.spec.provider_id if node.spec else None) or "",
    )


def host_identity(facts: Mapping[str, Any]) -> HostIdentity:
    """The identity of a host from its facts. Each of them may be unknown."""
    return HostIdentity(
        machine_id=facts.get("machine-id") or "",
        system_uuid=facts.get("system-uuid") or "",
        boot_id=facts.get("boot-id") or "",
        addresses=tuple(sorted(normalize_addresses(facts.get("host-addresses") or ()))),
        certificate_user=facts.get("kubelet-user") or "",
        hostname_override=(facts.get("kubelet-flags") or {}).get("hostname-override", ""),
        has_stable_machine_id=str(facts.get("stable-id")).startswith(MACHINE),
    )


def identity_preconditions(facts: Mapping[str, Any], commands: Iterable[Command], undo: Undo) -> tuple[FactCheck, ...]:
    """Checks before a step: of the host if a command goes there, of the power control if the step or its undo use it.

    Each check is about a value that does not change with a boot, so a different value means a different machine.

    A host is not checked before its undo, because the machine may be off when the step begins.
    """
    commands = tuple(commands)
    all_commands = (*commands, *(step.command for step in undo.steps))
    return (*_host_checks(facts, commands), *_power_checks(facts, all_commands))


def identity_checks(facts: Mapping[str, Any], undo: Undo) -> tuple[FactCheck, ...]:
    """The checks before commands of an undo, for the host and for its power control."""
    commands = tuple(step.command for step in undo.steps)
    uses_host = undo.disarm or undo.proof
    return (*_host_checks(facts, commands, always=bool(uses_host)), *_power_checks(facts, commands))


def _host_checks(facts: Mapping[str, Any], commands: Iterable[Command], *, always: bool = False) -> list[FactCheck]:
    if not always and not any(isinstance(command, HostCommand) for command in commands):
        return []
    first = "stable-id" if "stable-id" in facts else "machine-id"  # of a plan of 0.2.0
    second = next((name for name in _CHECKED if name in facts), "")
    return [FactCheck(str(name), facts[name]) for name in (PseudoFact.HOST_KEY, first, second) if facts.get(name)]


def _power_checks(facts: Mapping[str, Any], commands: Iterable[Command]) -> list[FactCheck]:
    uses_power = any(isinstance(command, PowerCommand) for command in commands)
    key = facts.get(PseudoFact.POWER_IDENTITY)
    return [FactCheck(PseudoFact.POWER_IDENTITY, key)] if uses_power and key else []
