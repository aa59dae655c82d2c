"""Deletes run directories that are no longer needed, but never a directory that an undo may need."""

from __future__ import annotations

import fcntl
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.core.errors import NodefallError, Refused
from chaos.core.result import RunState, StoredRun
from chaos.core.store.journal import NAME as JOURNAL
from chaos.core.store.run_directory import PLAN, RUN
from chaos.core.store.run_history import read_run
from chaos.core.text import shell_word

# Seconds for which a run without a result is left alone: a new one has no journal yet that would be locked.
_MIN_QUIET = 3600.0
_LAST = (JOURNAL, PLAN, RUN)  # deleted last, in this order: what an interrupted deletion leaves is still a run
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class PruneRules:
    """What to delete: all but the newest ``keep`` runs of each experiment, and that began ``older_than`` seconds ago.

    With both, a run is deleted only if both allow it.
    """

    keep: int | None = None
    older_than: float | None = None


@dataclass(frozen=True, slots=True)
class PruneDecision:
    """A run that the rules select: its size in bytes; ``reason`` why it stays nevertheless, "" if it is deleted."""

    run: StoredRun
    size: int
    reason: str


def select(runs: Sequence[StoredRun], rules: PruneRules, now: float) -> list[PruneDecision]:
    """The runs that the rules select. ``runs``: all of them, the newest first. ``now``: this machine's time."""
    rank: Counter[str] = Counter()
    found = []
    for run in runs:
        rank[run.experiment] += 1
        if rules.keep is not None and rank[run.experiment] <= rules.keep:
            continue
        changed, size = _measure(run.directory)
        began = max(changed if run.started is None else run.started, _written(run.directory / RUN))
        if rules.older_than is not None and now - began < rules.older_than:
            continue
        found.append(PruneDecision(run, size, _reason_to_stay(run, now - changed)))
    return found


def prune(decision: PruneDecision) -> None:
    """Delete the directory of a run, and that of its experiment if it is empty now.

    Raises Refused if an undo has become pending or the run is in use; NodefallError if a file cannot be deleted.
    """
    directory = decision.run.directory
    with _locked(directory / JOURNAL):
        run = read_run(directory, frozenset())  # the lock on its journal is this one
        if reason := decision.reason or _reason_to_stay(run, _MIN_QUIET):
            raise Refused(f"{directory} stays: {reason}")
        try:
            _delete(directory)
        except OSError as error:
            raise NodefallError(f"cannot delete {error.filename or directory}: {error.strerror}") from error


def _reason_to_stay(run: StoredRun, quiet: float) -> str:
    """Why a run may not be deleted, or "". ``quiet``: seconds since anything in its directory has changed."""
    if run.state is RunState.RUNNING:
        return "it is going on"
    if run.state is RunState.NO_RESULT and quiet < _MIN_QUIET:
        return "it has no result and was written to within the last hour, so it may be going on"
    if run.problem:
        return f"damaged, so it is unknown whether an undo is pending: {run.problem}"
    if run.pending is not False:
        return f"an undo is pending; run nodefall undo {shell_word(run.directory)}"
    if run.has_replica:
        return f"the cluster may still have a copy of its journal; run nodefall undo {shell_word(run.directory)}"
    return _foreign_content(run.directory)


def _foreign_content(directory: Path) -> str:
    """Content that no run writes: directories and links. "" if there is none."""
    if directory.is_symlink() or directory.parent.is_symlink():
        return "it is reached by a symbolic link"
    try:
        for entry in os.scandir(directory):
            if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                return f"it contains {entry.name}, which is not a file of a run"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return ""


def _measure(directory: Path) -> tuple[float, int]:
    """When the directory or a file in it was last changed, and the bytes of its files."""
    changed, size = _written(directory), 0
    try:
        for entry in os.scandir(directory):
            status = entry.stat(follow_symlinks=False)
            changed, size = max(changed, status.st_mtime), size + status.st_size
    except OSError:
        pass  # what cannot be read stays, as the problem of its run
    return changed, size


def _written(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


@contextmanager
def _locked(journal: Path) -> Iterator[None]:
    """Hold the lock of a journal, if there is one, so that no undo begins. Raises Refused if it is in use."""
    try:
        descriptor = os.open(journal, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield
        return
    except OSError as error:
        raise NodefallError(f"cannot lock {journal}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Refused(f"{journal.parent} stays: its run, or an undo of it, is going on") from None
    finally:
        os.close(descriptor)


def _delete(directory: Path) -> None:
    """Delete files and directory by descriptors: a path could be replaced by a link meanwhile. Raises OSError."""
    parent = os.open(directory.parent, _DIRECTORY)
    try:
        inside = os.open(directory.name, _DIRECTORY, dir_fd=parent)
        try:
            for name in sorted(os.listdir(inside), key=lambda name: (name in _LAST and _LAST.index(name) + 1, name)):
                os.unlink(name, dir_fd=inside)
        finally:
            os.close(inside)
        os.rmdir(directory.name, dir_fd=parent)
        is_empty = not os.listdir(parent)
    finally:
        os.close(parent)
    if is_empty:
        os.rmdir(directory.parent)
