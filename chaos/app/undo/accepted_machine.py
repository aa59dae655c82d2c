"""Accept the machine that a person has inspected as the machine of a node with a pending undo."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from chaos.cluster.cluster_state import list_nodes
from chaos.core.action import FactCheck
from chaos.core.api_fact import PseudoFact
from chaos.core.errors import NodefallError, Refused, UsageError
from chaos.core.identity import bind
from chaos.core.store.journal import Journal
from chaos.core.store.journal_format import AcceptedMachine
from chaos.engine.connection import ClusterConnection, local_machine_id, login
from chaos.engine.planning.identity import HOST_FACTS, host_identity, node_identity
from chaos.machines.pool import Hosts

ConfirmMachine = Callable[[str, list[str]], None]
"""Called with a node and what differs of its machine, a line each. Raises Refused to accept nothing."""


def accept_machines(
    journal: Journal, nodes: Iterable[str], connection: ClusterConnection, confirm: ConfirmMachine
) -> None:
    """Record in the journal what identifies the present machines of ``nodes``. It replaces the values of the plan.

    What a Node reports now must prove that the machine is the Node's: one proof, no contradiction. Raises UsageError
    for a node without a pending undo, Refused for a machine that is another Node's, cannot be read or is not confirmed.
    """
    for node in dict.fromkeys(nodes):
        entries = [entry for entry in journal.pending() if entry.node == node]
        was = tuple(dict.fromkeys(check for entry in entries for check in entry.identity))
        if not was:
            why = "nothing of its pending undo depends on a machine" if entries else "the run has no pending undo there"
            raise UsageError(f"--accept-machine {node}: {why}")
        _refuse_strangers(connection, node)
        found = _present(connection.hosts, node, tuple(dict.fromkeys(check.fact for check in was)))
        changes = [
            f"{check.fact}: {found.get(check.fact, 'not readable')} (it was {check.value})"
            for check in was
            if found.get(check.fact) != check.value
        ]
        if not changes:
            raise UsageError(f"--accept-machine {node}: the machine of the run is there: run nodefall undo without it")
        confirm(node, changes)
        identity = tuple(FactCheck(fact, value) for fact, value in found.items())
        by = f"{login()}@{socket.gethostname()}"
        journal.accept_machine(AcceptedMachine(node, identity, was, connection.clock.now(), by))


def _refuse_strangers(connection: ClusterConnection, node: str) -> None:
    """Raises Refused unless the host is the machine of its Node, and another one than nodefall runs on."""
    facts: dict[str, Any] = {}
    for fact in HOST_FACTS:
        with suppress(NodefallError):  # what matters is whether a proof is left
            facts[fact] = connection.hosts.read(node, fact)
    nodes = {each.metadata.name: node_identity(each) for each in list_nodes(connection.kube)}
    if node not in nodes:
        raise Refused(f"cannot accept the machine of {node}: the cluster has no such Node")
    if facts.get("machine-id") and facts["machine-id"] == local_machine_id():
        raise Refused(f"cannot accept the machine of {node}: it is the one that nodefall runs on")
    binding = bind(nodes[node], host_identity(facts), nodes)
    if not binding.is_bound:
        why = "; ".join(binding.contradictions) or "nothing that can be read there shows that it is the Node's machine"
        hint = "correct the inventory, or start the kubelet there, so that the Node reports the machine"
        raise Refused(f"cannot accept the machine of {node}: {why}", hint=hint)


def _present(hosts: Hosts, node: str, facts: Iterable[str]) -> Mapping[str, Any]:
    """The values that can be read. Raises Refused if none can, or if that of the power control cannot."""
    found: dict[str, Any] = {}
    why: NodefallError | None = None
    for fact in facts:
        try:
            found[fact] = hosts.read(node, fact)
        except NodefallError as error:
            why = error
            if fact == PseudoFact.POWER_IDENTITY:
                break
    if why and (not found or PseudoFact.POWER_IDENTITY in set(facts) - found.keys()):
        message = f"cannot accept the machine of {node}: {why.message}"
        raise Refused(message, hint=why.hint or "power it on and make it reachable, then accept it") from why
    return {fact: value for fact, value in found.items() if value}
