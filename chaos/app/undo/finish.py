"""Finishes the pending undo of a run: from its journal, else from the copy in the cluster and the plan."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chaos.app.undo.replica_entries import RejectedEntry, ReplicaRules, ResolvedReplica, resolve_replica
from chaos.app.undo.sources import load_plan, merge_entries, planned_entries
from chaos.app.wiring.connect import connect_cluster
from chaos.app.wiring.lock import hold_lock, hold_machine_lock, journal_signer
from chaos.cluster.cluster_state import cluster_view, list_nodes
from chaos.cluster.journal_mirror import JournalMirror, find_replica
from chaos.cluster.replica import Authenticity, PendingRun, RunIdentity, configmap_name
from chaos.core.action import FactCheck
from chaos.core.api_fact import PseudoFact
from chaos.core.errors import BadInput, NodefallError, Refused, UndoPending, UsageError, bad_input
from chaos.core.identity import bind
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan
from chaos.core.ports import Progress
from chaos.core.result import UndoResult
from chaos.core.store.journal import NAME, Journal, read_intact, replace_damaged
from chaos.core.store.journal_format import AcceptedMachine, EntryKey, PendingUndo, entry_key
from chaos.core.store.run_directory import RunInfo
from chaos.engine.connection import ClusterConnection, local_machine_id, lock_namespace, login
from chaos.engine.helper_pods import helper_namespaces
from chaos.engine.planning.identity import HOST_FACTS, host_identity, node_identity
from chaos.engine.registry import load_registry
from chaos.engine.rollback import UndoRules, roll_back
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
            why = "no pending undo there depends on a machine" if entries else "the run has no pending undo there"
            raise UsageError(f"--accept-machine {node}: {why}")
        _refuse_strangers(connection, node)
        found = _present(connection.hosts, node, tuple(dict.fromkeys(check.fact for check in was)))
        changes = [
            f"{check.fact}: {found.get(check.fact, 'not readable')} (it was {check.value})"
            for check in was
            if found.get(check.fact) != check.value
        ]
        if not changes:
            raise UsageError(
                f"--accept-machine {node}: the machine of the run is there: run nodefall undo without the option"
            )
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
        raise Refused(f"cannot accept the machine of {node}: nodefall runs on it")
    binding = bind(nodes[node], host_identity(facts), nodes)
    if not binding.is_bound:
        why = "; ".join(binding.contradictions) or "nothing readable on it shows that it is the Node's machine"
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


_REPLAY_SECONDS = 24 * 3600.0  # an older journal may be one that was undone long ago, and put back
ConfirmEntries = Callable[[PendingRun, ResolvedReplica], None]
"""Called with operations for which only a journal in the cluster vouches. Raises Refused to undo none of them."""


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """One run to be undone. Its directory is a copy if it was made from the journal in the cluster.

    ``on_open`` is called when no other process has the journal.
    """

    directory: Path
    info: RunInfo
    inventory: Inventory
    confirm: ConfirmEntries
    on_open: Callable[[], object] = lambda: None
    accept: tuple[str, ...] = ()  # nodes whose present machine a person accepts
    confirm_machine: ConfirmMachine = lambda _node, _changes: None
    inventory_file: str = ""  # that was given, "" for the one that the run has stored

    @property
    def is_copy(self) -> bool:
        return not self.info.by


@dataclass(frozen=True, slots=True)
class Undone:
    """What was undone, what the journal in the cluster names but is not undone, and what is still pending.

    ``configmap`` is the journal in the cluster, as NAMESPACE/NAME.
    """

    results: tuple[UndoResult, ...] = ()
    rejected: tuple[RejectedEntry, ...] = ()
    pending: tuple[PendingUndo, ...] = ()
    configmap: str = ""


def finish_undo(request: UndoRequest, progress: Progress) -> Undone:
    """Undo what is pending. Raises NodefallError where that is impossible."""
    journal = _open_intact(request.directory)
    try:
        request.on_open()
        if journal and not journal.is_empty and not journal.pending() and not journal.has_replica:
            return Undone()
        with connect_cluster(request.inventory) as connection, connection.clock.participant():
            _check_cluster(connection, request.info)
            with (
                hold_machine_lock(connection) as machine,
                hold_lock(connection, machine, request.info.run, progress.note, wait_for_holder=True) as lock,
            ):
                if connection.helpers:
                    connection.helpers.take_over(request.info.run, helper_namespaces(request.inventory))
                session = _UndoSession(request, connection, progress)
                if journal and journal.is_empty and session.has_copy():
                    journal.close()
                    journal = None
                if journal is None:
                    session.rebuild()
                    journal = Journal(request.directory)
                return session.undo(journal, lock.blocked)
    finally:
        if journal:
            journal.close()


def _open_intact(directory: Path) -> Journal | None:
    """The journal, None if it is damaged. Raises Refused."""
    try:
        return Journal(directory)
    except BadInput:
        return None


def _check_cluster(connection: ClusterConnection, info: RunInfo) -> None:
    if info.cluster_uid and connection.uid != info.cluster_uid:
        raise Refused(
            f"wrong cluster: the run was on UID {info.cluster_uid}, but the server reports {connection.uid}",
            hint="give the inventory of the run with --inventory",
        )


class _UndoSession:
    """The undo of one run, while both locks are held."""

    def __init__(self, request: UndoRequest, connection: ClusterConnection, progress: Progress) -> None:
        self._request, self._connection, self._progress = request, connection, progress
        self._namespace = lock_namespace(connection)
        self._signer = journal_signer(connection)

    def has_copy(self) -> bool:
        """Whether the cluster has a copy of the run's journal."""
        return find_replica(self._connection.kube, self._namespace, self._request.info.run) is not None

    def undo(self, journal: Journal, blocked: Callable[[], str]) -> Undone:
        """Undo what is pending in the journal; in one that is a copy, also what was published after it was made."""
        connection = self._connection
        mirror = JournalMirror(connection.kube, self._namespace, self._own_identity(journal), journal, self._signer)
        published: frozenset[EntryKey] | None = None
        rejected: tuple[RejectedEntry, ...] = ()
        replica = mirror.read()
        if replica:
            journal.record_replica(exists=True)  # one that lost its end may not say so
            rejected = self._import(replica, journal)
            if self._request.is_copy and not replica.error:
                mirror.identity = replica.identity
        accept_machines(journal, self._request.accept, connection, self._request.confirm_machine)
        if journal.has_replica:
            published = mirror.still_published()
        rules = UndoRules(
            may_be_undone=lambda entry: published is not None and entry_key(entry) not in published,
            blocked=blocked,
            inventory=self._request.inventory_file,
        )
        results = roll_back(journal, connection.hosts, connection.clock, self._progress, rules)
        if why := blocked():
            raise UndoPending(f"the undo was stopped: {why}", hint="run nodefall undo again")
        if why := mirror.reconcile([each.entry for each in rejected]):
            raise UndoPending(f"undone, but not recorded in the cluster: {why}", hint="run nodefall undo again")
        configmap = f"{self._namespace}/{configmap_name(mirror.identity.run)}"
        return Undone(tuple(results), rejected, tuple(journal.pending()), configmap)

    def _own_identity(self, journal: Journal) -> RunIdentity:
        """The identity by what is on this machine, which the copy in the cluster cannot change."""
        info, plan = self._request.info, load_plan(self._request.directory)
        steps = plan.steps if plan else journal.pending()
        nodes = tuple(sorted({step.node for step in steps if step.node}))
        return RunIdentity(info.run, info.experiment, info.started, info.by, nodes)

    def rebuild(self) -> None:
        """Replace a damaged journal by the operations of all sources. Raises BadInput if there is none.

        It is recorded as published: what the copy in the cluster does not have may be undone, or never have begun.
        """
        directory, run = self._request.directory, self._request.info.run
        replica, plan = find_replica(self._connection.kube, self._namespace, run), load_plan(directory)
        copied = self._resolve(replica, plan).accepted if replica and not replica.error else ()
        entries = merge_entries(copied, read_intact(directory), planned_entries(plan) if plan else ())
        if not entries and plan is None:
            raise bad_input(
                str(directory / NAME),
                f"the journal is damaged, without plan.json and ConfigMap {configmap_name(run)} to rebuild it from",
                "look up in debug.log and the recording what was done, and undo it by hand",
            )
        saved = replace_damaged(directory, entries, has_replica=True)
        used = " and the plan" if plan else ""
        source = "the copy in the cluster" if replica and not replica.error else "its intact lines"
        self._progress.note(f"the journal is damaged or empty, and saved as {saved.name}; rebuilt from {source}{used}")

    def _import(self, replica: PendingRun, journal: Journal) -> tuple[RejectedEntry, ...]:
        """Add the operations of the copy that the journal does not have; those that are not undone.

        The journal of the run lacks some only if its end was lost. There the plan has their undo: what it does not
        have was not of this run.
        """
        new = replace(replica, entries=tuple(e for e in replica.entries if not journal.has_recorded(e.key)))
        plan = None if self._request.is_copy else load_plan(self._request.directory)
        resolved = self._resolve(new, plan=None) if plan is None else ResolvedReplica(_named(plan, new))
        for entry in resolved.accepted:
            if not journal.has_recorded(entry_key(entry)):
                journal.add_entry(entry)
        return resolved.rejected

    def _resolve(self, replica: PendingRun, plan: Plan | None) -> ResolvedReplica:
        """The undo of each operation in the copy; confirmed, unless a plan on this machine or a key vouches for it."""
        connection = self._connection
        view = cluster_view(connection.kube, connection.uid)
        authenticity = self._signer.verify(replica)
        rules = ReplicaRules(load_registry(), connection.inventory, view, authenticity, plan)
        resolved = resolve_replica(replica, rules)
        is_recent = abs(connection.clock.now() - replica.identity.started) < _REPLAY_SECONDS  # a clock may be set back
        if resolved.accepted and plan is None and not (authenticity is Authenticity.SIGNED and is_recent):
            self._request.confirm(replica, resolved)
        return resolved


def _named(plan: Plan, replica: PendingRun) -> tuple[PendingUndo, ...]:
    """The operations of a plan that a copy names."""
    names = {(entry.step, entry.action, entry.node) for entry in replica.entries}
    return tuple(entry for entry in planned_entries(plan) if (entry.step, entry.action, entry.node) in names)
