"""Pending undo in the run directories of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chaos.core.errors import NodefallError
from chaos.core.store.journal import NAME, read_entries
from chaos.core.store.journal_format import EntryKey, PendingUndo
from chaos.core.store.run_directory import RUN, RunInfo, load


@dataclass(frozen=True, slots=True)
class LocalRun:
    """The journal of a run directory. ``run`` is "" if run.json is unreadable: then the cluster is unknown too.

    ``error`` is why the journal cannot be read; then what is pending is unknown. ``undone``: what is proven undone.
    """

    directory: Path
    run: str
    pending: tuple[PendingUndo, ...] = ()
    error: str = ""
    undone: frozenset[EntryKey] = frozenset()

    @property
    def is_readable(self) -> bool:
        return bool(self.run) and not self.error

    @property
    def has_pending(self) -> bool:
        """Whether an undo is pending, or may be."""
        return bool(self.error) or any(entry.undo.proof for entry in self.pending)


def local_runs(reports: Path, cluster: str) -> list[LocalRun]:
    """The runs below ``reports`` on a cluster, which is as in :attr:`RunInfo.cluster`; and those on an unknown one.

    A run directory without a journal is left out: its run has changed nothing.
    """
    runs = []
    for path in sorted(reports.glob(f"*/*/{NAME}")):
        try:
            info = load(path.parent, RUN, RunInfo)
        except NodefallError:
            info = None
        if info is None or (info.cluster or info.cluster_uid) == cluster:
            runs.append(_local_run(path.parent, info.run if info else ""))
    return runs


def _local_run(directory: Path, run: str) -> LocalRun:
    try:
        pending, undone = read_entries(directory)
        return LocalRun(directory, run, tuple(pending), undone=undone)
    except NodefallError as error:
        return LocalRun(directory, run, error=error.message)
