"""Reads the run directories: the only store of finished runs, those in progress, and what is left of others.

Among them is pending undo of this machine. Which journals are locked is read without locking them: whoever tries a lock
may be in the way of the run that is about to.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from chaos.core.errors import NodefallError
from chaos.core.files import read_regular
from chaos.core.plan import nodes_by_target
from chaos.core.result import RunResult, RunState, StoredRun
from chaos.core.store.journal import NAME, read_entries, read_state
from chaos.core.store.journal import NAME as JOURNAL
from chaos.core.store.journal_format import EntryKey, PendingUndo
from chaos.core.store.run_directory import EXPERIMENT, PLAN, RESULT, RUN, RunInfo, load, load_result

_MARKERS = (RUN, PLAN, RESULT)  # any one makes a directory that of a run: each can be lost

_LOCKS = Path("/proc/locks")


class _Target(Struct, frozen=True):
    target: str
    node: str


class _Targets(Struct, frozen=True):
    """The part of plan.json that is read."""

    run: str = ""
    targets: tuple[_Target, ...] = ()


def read_runs(reports: Path, experiment: str = "*") -> list[StoredRun]:
    """The runs below ``reports``, the newest first, in the order that ``last`` uses. ``experiment``: only runs of
    this experiment. Damaged runs are described and raise no error.
    """
    locked = flocked_inodes()
    found = sorted(run_directories(reports, experiment), key=_order, reverse=True)
    return [read_run(directory, locked) for directory in found]


def run_directories(reports: Path, experiment: str = "*") -> Iterator[Path]:
    """The directories REPORTS/EXPERIMENT/STAMP of runs, unordered; none if ``reports`` is missing."""
    parents = reports.iterdir() if experiment == "*" and reports.is_dir() else [reports / experiment]
    for parent in parents:
        with suppress(OSError):
            yield from (each for each in parent.iterdir() if _is_run(each))


def _is_run(directory: Path) -> bool:
    try:
        return directory.is_dir() and any((directory / name).is_file() for name in _MARKERS)
    except OSError:
        return True  # of another user, say: what cannot be read is named


def read_run(directory: Path, locked: frozenset[int] | None = None) -> StoredRun:
    """The run in a directory. ``locked``: inodes of locked files, read by default."""
    problems: list[str] = []
    result = _result(directory, problems)
    info = _info(directory, problems)
    pending, has_replica = _journal_state(directory, result, problems)
    state = _state(directory, result, problems, flocked_inodes() if locked is None else locked)
    return StoredRun(
        directory=directory,
        name=f"{directory.parent.name}/{directory.name}",
        state=state,
        experiment=directory.parent.name,
        run=info.run if info else result.run if result else "",
        result=result,
        started=result.started if result else info.started if info else None,
        targets=dict(result.targets) if result else _planned_targets(directory),
        inventory=_name_of(info),
        cluster_uid=(result.cluster_uid if result else "") or (info.cluster_uid if info else ""),
        simulated=result.simulated if result else _is_simulated(info),
        hosts=_host_count(info),
        by=(info.by if info else "") or (result.started_by if result else ""),
        nodefall=(info.nodefall if info else "") or (result.nodefall_version if result else ""),
        experiment_hash=_experiment_hash(directory),
        pending=pending,
        has_replica=has_replica,
        problem="; ".join(problems),
    )


def _order(directory: Path) -> tuple[str, int]:
    try:
        return directory.name, directory.stat().st_mtime_ns
    except OSError:
        return directory.name, 0


def _result(directory: Path, problems: list[str]) -> RunResult | None:
    if not os.path.lexists(directory / RESULT):
        return None
    try:
        return load_result(directory)
    except NodefallError as error:
        problems.append(error.message)
        return None


def _info(directory: Path, problems: list[str]) -> RunInfo | None:
    try:
        return load(directory, RUN, RunInfo)
    except NodefallError as error:
        problems.append(error.message)
        return None


def _journal_state(directory: Path, result: RunResult | None, problems: list[str]) -> tuple[bool | None, bool]:
    """Whether an undo is pending, None if unknown; and whether the cluster may have a copy of the journal."""
    if not os.path.lexists(directory / JOURNAL):
        has_undone = result is None or all(undo.proven for undo in result.undo)
        if not has_undone:
            problems.append(f"{directory / JOURNAL} is missing, and an undo was pending")
        return (False if has_undone else None), False
    try:
        state = read_state(directory)
    except NodefallError as error:
        problems.append(error.message)
        return None, True
    return any(entry.undo.proof for entry in state.pending), state.has_replica


def _state(directory: Path, result: RunResult | None, problems: list[str], locked: frozenset[int]) -> RunState:
    if result:
        return RunState.FINISHED
    try:
        if (directory / JOURNAL).stat().st_ino in locked:
            return RunState.RUNNING
    except OSError:
        pass  # no journal yet, or none any more
    return RunState.DAMAGED if problems else RunState.NO_RESULT


def _planned_targets(directory: Path) -> dict[str, tuple[str, ...]] | None:
    try:
        return nodes_by_target(load(directory, PLAN, _Targets).targets)
    except NodefallError:
        return None


def _name_of(info: RunInfo | None) -> str:
    metadata = info.inventory.get("metadata") if info else None
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _is_simulated(info: RunInfo | None) -> bool:
    cluster: Any = info.inventory.get("cluster") if info else None
    return isinstance(cluster, dict) and cluster.get("simulated") is True


def _host_count(info: RunInfo | None) -> int:
    hosts = info.inventory.get("hosts") if info else None
    return len(hosts) if isinstance(hosts, dict) else 0


def _experiment_hash(directory: Path) -> str:
    """SHA-256 of the run's copy of the experiment, as in its plan; "" without the copy."""
    try:
        return hashlib.sha256(read_regular(directory / EXPERIMENT)).hexdigest()
    except OSError:
        return ""


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


def flocked_inodes(locks: Path = _LOCKS) -> frozenset[int]:
    """Inodes with a lock of flock(2), by proc_locks(5): of processes that this one may see, empty where it is missing.

    Devices are left out: those of overlayfs and btrfs are not those that stat(2) reports.
    """
    try:
        lines = locks.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return frozenset()
    fields = (line.split() for line in lines)
    found = [each[5].rpartition(":")[2] for each in fields if len(each) > 5 and each[1] == "FLOCK"]  # "->": it waits
    return frozenset(int(inode) for inode in found if inode.isdecimal())
