"""A person has looked at what is in the place of a node, and its pending undo is done there."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from chaos.app.connect import ClusterConnection, login
from chaos.hosts.pool import Hosts
from chaos.model.action import FactCheck
from chaos.model.errors import NodefallError, Refused, UsageError
from chaos.model.ports import Progress
from chaos.store.journal import Journal
from chaos.store.journal_format import AcceptedMachine, PendingUndo


def accept_machines(journal: Journal, nodes: Iterable[str], connection: ClusterConnection, progress: Progress) -> None:
    """Journal what identifies the machines that are in the place of ``nodes`` now, in place of what the plan has.

    Raises UsageError for a node without a pending undo, Refused if its machine cannot be read: nothing is accepted
    unseen.
    """
    for node in nodes:
        entries = [entry for entry in journal.pending() if entry.node == node]
        if not entries:
            raise UsageError(f"--accept-machine {node}: the run has no pending undo there")
        was = _checks_of(entries)
        found = {check.fact: _read(connection.hosts, node, check.fact) for check in was}
        changed = [check for check in was if found[check.fact].value != check.value]
        if not changed:
            progress.note(f"{node} is the machine of the run: there is nothing to accept")
            continue
        by, now = f"{login()}@{socket.gethostname()}", connection.clock.now()
        journal.accept_machine(AcceptedMachine(node, tuple(found.values()), was, now, by))
        for check in changed:
            progress.note(f"{node}: accepted by {by}: {found[check.fact]} (it was {check.value})")


def _checks_of(entries: Iterable[PendingUndo]) -> tuple[FactCheck, ...]:
    """The checks of all entries, one for each fact."""
    return tuple({check.fact: check for entry in entries for check in entry.identity}.values())


def _read(hosts: Hosts, node: str, fact: str) -> FactCheck:
    try:
        return FactCheck(fact, hosts.read(node, fact))
    except NodefallError as error:
        raise Refused(
            f"cannot accept the machine of {node}: {error.message}",
            hint=error.hint or "power it on and make it reachable, then accept it",
        ) from error
