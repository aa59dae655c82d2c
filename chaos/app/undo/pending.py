"""Pending undo of earlier runs: the union of what their journals, the cluster's copies and the Nodes show.

Each source may be lost or damaged alone: a run starts only if none of them shows a pending undo.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.app.undo.elsewhere import learn_from_cluster
from chaos.cluster.journal_mirror import delete_configmap, pending_runs
from chaos.cluster.node_traces import list_marks, remove_marks
from chaos.cluster.replica import PendingRun, ReplicaEntry
from chaos.core.errors import NodefallError, Refused, UndoPending
from chaos.core.node_mark import FoundMark
from chaos.core.result import PendingUndoFinding, Source
from chaos.core.store.journal import read_pending
from chaos.core.store.journal_format import PendingUndo
from chaos.core.store.run_history import LocalRun, local_runs
from chaos.core.text import on_node, shell_word
from chaos.engine.connection import ClusterConnection, cluster_identity, lock_namespace
from chaos.engine.observations import ClusterObservations

_SHOWN = 3  # findings in one error
_SHOWN_STEPS = 50  # of one journal
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UndoSources:
    """What each source shows: run directories below ``reports``, ConfigMaps in ``namespace``, marks on Nodes."""

    reports: Path
    namespace: str
    local: tuple[LocalRun, ...] = ()
    cluster: tuple[PendingRun, ...] = ()
    marks: tuple[FoundMark, ...] = ()

    def findings(self) -> list[PendingUndoFinding]:
        """Every pending undo once, those that ``nodefall undo`` can finish first. A stale mark is none."""
        return [
            *(self._of_journal(run) for run in self.local if run.is_readable and run.has_pending),
            *(self._of_copy(run) for run in self.cluster if run.has_pending and not run.error and self._is_new(run)),
            *(self._of_damaged_journal(run) for run in self.local if not run.is_readable and run.has_pending),
            *(self._of_mark(mark) for mark in self.marks if not mark.is_stale and not self._is_recorded(mark)),
            *(self._of_damaged_copy(run) for run in self.cluster if run.error and self._is_new(run)),
        ]

    def _is_new(self, run: PendingRun) -> bool:
        """Whether no journal of this machine has a pending undo of the run: its undo uses the copy."""
        is_local = any(each.run == run.identity.run and each.has_pending for each in self.local)
        return not is_local and not self._is_undone(run)

    def _is_undone(self, run: PendingRun) -> bool:
        """Whether a journal of this machine has proof that all of the copy is undone.

        Then the copy could not be deleted, or someone has put it back: its undo would only end what came later.
        """
        keys = {entry.key for entry in run.entries}
        return not run.error and any(each.run == run.identity.run and keys <= each.undone for each in self.local)

    def _is_recorded(self, mark: FoundMark) -> bool:
        """Whether a readable journal or copy has the step of the mark pending: its undo removes the mark."""
        if mark.mark is None:
            return False
        pending = [(e.step, e.node) for run in self.local if run.run == mark.mark.run for e in run.pending]
        copies = [run for run in self.cluster if run.identity.run == mark.mark.run and not self._is_undone(run)]
        pending += [(e.step, e.node) for run in copies for e in run.entries]
        return any(step == mark.mark.step and node in ("", mark.node) for step, node in pending)

    def _of_journal(self, run: LocalRun) -> PendingUndoFinding:
        hint = f"run nodefall undo {shell_word(run.directory)}"
        return PendingUndoFinding(run.run, Source.JOURNAL, describe_entries(run.pending), hint)

    def _of_damaged_journal(self, run: LocalRun) -> PendingUndoFinding:
        directory, away = (
            shell_word(run.directory),
            f"move {shell_word(run.directory)} out of {shell_word(self.reports)}",
        )
        if not run.run:
            what = describe_entries(run.pending) or f"unknown: {run.error}"
            by_hand = (
                f"if it is of this cluster, run nodefall undo {directory} --inventory FILE; if that cannot read the "
                f"plan either, restore by hand what {directory} shows, then {away}"
            )
            return PendingUndoFinding("", Source.JOURNAL, f"{what}; {run.directory}/run.json is unreadable", by_hand)
        hint = (
            f"run nodefall undo {directory}; if that cannot read the journal either, restore by hand what "
            f"{directory}/plan.json lists, then {away}"
        )
        copy = describe_entries(e for each in self.cluster if each.identity.run == run.run for e in each.entries)
        what = f"{copy or 'unknown'}: {run.error}"
        return PendingUndoFinding(run.run, Source.JOURNAL, what, hint)

    def _of_copy(self, run: PendingRun) -> PendingUndoFinding:
        identity = run.identity
        what = f"{describe_entries(run.entries)}{f' (by {identity.holder})' if identity.holder else ''}"
        hint = f"run nodefall undo {identity.run} --inventory FILE"
        if any(each.run == identity.run for each in self.local):  # `undo RUN` would read only that journal
            hint += f" --reports {shell_word(self.reports.with_name(f'{self.reports.name}-undo'))}"
        return PendingUndoFinding(identity.run, Source.CLUSTER, what, hint)

    def _of_damaged_copy(self, run: PendingRun) -> PendingUndoFinding:
        what = f"configmap {shlex.quote(run.name)}"
        hint = (
            f"restore by hand what `kubectl -n {self.namespace} get {what} -o yaml` shows, "
            f"then run kubectl -n {self.namespace} delete {what}"
        )
        return PendingUndoFinding(run.identity.run, Source.CLUSTER, describe_pending(run), hint)

    def _of_mark(self, mark: FoundMark) -> PendingUndoFinding:
        if mark.mark is None:
            hint = f"restore {mark.node} by hand if it is not as it should be, then run {mark.removal}"
            why = f"unknown: the annotation {mark.key} of {mark.node} is unreadable"
            return PendingUndoFinding("", Source.NODE, why, hint)
        run, hint = mark.mark.run, f"run {mark.by_hand}"
        if any(each.run == run and each.error for each in self.local):  # its undo, above, may remove the mark
            hint = f"if the mark is still there, {hint}"
        elif not any(each.run == run for each in self.local):
            hint = f"on the machine of the run, run nodefall undo {run}; else {hint}"
        return PendingUndoFinding(run, Source.NODE, f"{mark}, as an annotation of the Node shows", hint)


def read_sources(connection: ClusterConnection, reports: Path) -> UndoSources:
    """What all sources show. Raises NodefallError."""
    namespace = lock_namespace(connection)
    return UndoSources(
        reports,
        namespace,
        tuple(local_runs(reports, cluster_identity(connection))),
        tuple(pending_runs(connection.kube, namespace)),
        tuple(list_marks(connection.kube)),
    )


def with_pending_undo(
    observations: ClusterObservations, connection: ClusterConnection, reports: Path
) -> ClusterObservations:
    """``observations`` with the pending undo, as far as permissions allow to read it."""
    namespace, errors = lock_namespace(connection), dict(observations.list_errors)
    sources = UndoSources(reports, namespace, tuple(local_runs(reports, cluster_identity(connection))))
    try:
        sources = replace(sources, cluster=tuple(pending_runs(connection.kube, namespace)))
    except NodefallError as error:
        errors["configmaps"] = error.message
    try:
        sources = replace(sources, marks=tuple(list_marks(connection.kube)))
    except NodefallError as error:
        errors["nodes"] = error.message
    stale = tuple(mark for mark in sources.marks if mark.is_stale)
    findings = tuple(sources.findings())
    return replace(observations, pending_undo=findings, stale_marks=stale, list_errors=errors)


def refuse_pending_undo(connection: ClusterConnection, reports: Path, note: Callable[[str], object]) -> UndoSources:
    """The sources, none of which shows a pending undo. Raises Refused if one does.

    ``note`` is called with each operation that another machine has undone, as the journal on this one learns only now.
    """
    learn_from_cluster(connection, reports, note)
    sources = read_sources(connection, reports)
    if found := sources.findings():
        more = f" (and {len(found) - _SHOWN} more)" if len(found) > _SHOWN else ""
        message = "; ".join(str(finding) for finding in found[:_SHOWN]) + more
        raise Refused(message, hint="; then ".join(dict.fromkeys(finding.hint for finding in found[:_SHOWN])))
    return sources


def remove_finished_runs(connection: ClusterConnection, reports: Path, note: Callable[[str], object]) -> None:
    """Delete the ConfigMaps of finished runs, and marks of what is undone already, as after kubectl uncordon.

    Requires the cluster's lock. Raises Refused if an undo is pending. ``note`` is also called for a mark that stays:
    the credentials of a run without a step on Nodes may not change them.
    """
    sources = refuse_pending_undo(connection, reports, note)
    for finished in sources.cluster:
        delete_configmap(connection.kube, sources.namespace, finished.identity.run)
    for problem in remove_marks(connection.kube, sources.marks):
        note(problem)


def describe_pending(run: PendingRun) -> str:
    """The steps of a copy that are to be undone, or why they are unknown."""
    return f"unknown: the journal is unreadable ({run.error})" if run.error else describe_entries(run.entries)


def describe_entries(entries: Iterable[PendingUndo | ReplicaEntry]) -> str:
    """The steps that are to be undone, as ``power-off on worker-1``, comma-separated; of very many the first ones."""
    steps = [*dict.fromkeys(on_node(e.step, e.node) for e in entries if isinstance(e, ReplicaEntry) or e.undo.proof)]
    more = f" and {len(steps) - _SHOWN_STEPS} more" if len(steps) > _SHOWN_STEPS else ""
    return ", ".join(steps[:_SHOWN_STEPS]) + more


@contextmanager
def guard_pending_undo(directory: Path) -> Iterator[None]:
    """Turn errors and interruptions into UndoPending if the journal in ``directory`` has a pending undo."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        pending = _describe_pending(directory)
        if not pending:
            raise
        logger.error("failed with a pending undo: %s", pending, exc_info=error)  # noqa: TRY400 - also for interruptions
        hint = f"nodefall undo {shell_word(directory)}"
        if isinstance(error, NodefallError):
            reason, hint = error.message, f"{error.hint + '; then' if error.hint else 'run'}: {hint}"
        else:
            reason = "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        raise UndoPending(f"{reason}; pending undo: {pending}", hint=hint) from error


def _describe_pending(directory: Path) -> str:
    """The steps to be undone, comma-separated; entries with nothing to undo do not count."""
    try:
        steps = [on_node(entry.step, entry.node) for entry in read_pending(directory) if entry.undo.proof]
    except NodefallError:
        return "unknown: the journal is unreadable"
    return ", ".join(dict.fromkeys(steps))
