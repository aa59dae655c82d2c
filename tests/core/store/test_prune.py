"""Pruning: what the rules select, and what stays whatever they say."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.action import FactCheck, Undo
from chaos.core.errors import NodefallError, Refused
from chaos.core.result import RunState, StoredRun
from chaos.core.store.journal import NAME as JOURNAL
from chaos.core.store.journal import Journal
from chaos.core.store.prune import PruneRules, prune, select
from chaos.core.store.run_directory import RESULT, RUN
from chaos.core.store.run_history import read_runs
from tests.kit.stored_runs import DAY, NOW, result_of, store, within

PENDING = Undo(proof=(FactCheck("node-ready", True),))
LATER = NOW + 1000 * DAY  # after whatever a test writes


def age(directory: Path) -> None:
    """As if its files had been written when its run began."""
    for path in (*directory.iterdir(), directory):
        os.utime(path, (NOW, NOW), follow_symlinks=False)


def old_run(reports: Path, started: float = NOW, experiment: str = "e") -> Path:
    directory = store(reports, result_of(within(1.0), started=started, experiment=experiment))
    age(directory)
    return directory


def reasons(reports: Path, rules: PruneRules = PruneRules(keep=0), now: float = LATER) -> dict[str, str]:  # noqa: B008
    return {each.run.name: each.reason for each in select(read_runs(reports), rules, now)}


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 99)), unique=True, max_size=12),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 99),
)
def test_the_rules(made: list[tuple[str, int]], keep: int | None, days: int | None) -> None:
    """Against a naive reading of both options."""
    runs = [
        StoredRun(Path("/missing") / e, f"{e}/{day}", RunState.FINISHED, e, started=NOW + day * DAY)
        for e, day in sorted(made, key=lambda each: -each[1])
    ]
    found = {
        each.run.name for each in select(runs, PruneRules(keep, None if days is None else days * DAY), NOW + 99 * DAY)
    }
    for e, day in made:
        newer = sum(other == e and d > day for other, d in made)
        is_spared = (keep is not None and newer < keep) or (days is not None and 99 - day < days)
        assert (f"{e}/{day}" in found) is not is_spared


def test_a_run_is_deleted_with_all_its_files(tmp_path: Path) -> None:
    doomed, other = old_run(tmp_path), old_run(tmp_path, NOW + DAY)
    (decision,) = select(read_runs(tmp_path), PruneRules(keep=1), LATER)
    assert decision.size == sum(path.stat().st_size for path in doomed.iterdir())
    prune(decision)
    assert not doomed.exists()
    assert sorted(path.name for path in other.iterdir()) == sorted([RUN, RESULT, JOURNAL, "experiment.yaml"])


def test_a_run_that_was_killed_and_undone_is_deleted(tmp_path: Path) -> None:
    directory = store(tmp_path, None)
    age(directory)
    (decision,) = select(read_runs(tmp_path), PruneRules(keep=0), LATER)
    prune(decision)
    assert not directory.exists()


def test_the_directory_of_an_experiment_goes_with_its_last_run(tmp_path: Path) -> None:
    old_run(tmp_path)
    for decision in select(read_runs(tmp_path), PruneRules(keep=0), LATER):
        prune(decision)
    assert list(tmp_path.iterdir()) == []


def test_a_run_whose_start_was_simulated_is_as_old_as_its_directory(tmp_path: Path) -> None:
    store(tmp_path, result_of(within(1.0), started=NOW - 100 * DAY))  # written now, which is later than NOW
    written = (tmp_path / "e").stat().st_mtime
    assert not reasons(tmp_path, PruneRules(older_than=DAY), written + 3600)
    assert reasons(tmp_path, PruneRules(older_than=DAY), written + 2 * DAY)


def _pending(directory: Path) -> None:
    with Journal(directory) as journal:
        journal.record_intent("s", "cordon", "n", PENDING, NOW)


def _replica(directory: Path) -> None:
    with Journal(directory) as journal:
        journal.record_replica(True)


def _experiment_link(directory: Path) -> None:
    elsewhere = directory.parent.rename(directory.parents[2] / "elsewhere")
    directory.parent.symlink_to(elsewhere)


STAYS: list[tuple[str, Callable[[Path], object], str]] = [
    ("a pending undo", _pending, "an undo is pending; run nodefall undo"),
    ("a copy in the cluster", _replica, "the cluster may still have a copy"),
    ("a damaged journal", lambda d: (d / JOURNAL).write_bytes(b"{\n"), "damaged"),
    ("a damaged result", lambda d: (d / RESULT).write_bytes(b"{"), "damaged"),
    ("a damaged info", lambda d: (d / RUN).write_bytes(b"{"), "damaged"),
    ("a directory", lambda d: (d / "mine").mkdir(), "it contains mine"),
    ("a link", lambda d: (d / "mine").symlink_to("/etc"), "it contains mine"),
    ("a socket", lambda d: os.mkfifo(d / "mine"), "it contains mine"),
    ("a linked experiment", _experiment_link, "by a symbolic link"),
]


@pytest.mark.parametrize(("change", "reason"), [case[1:] for case in STAYS], ids=[case[0] for case in STAYS])
def test_what_stays(tmp_path: Path, change: Callable[[Path], object], reason: str) -> None:
    reports = tmp_path / "reports"
    directory = old_run(reports)
    change(directory)
    age(directory)
    (decision,) = select(read_runs(reports), PruneRules(keep=0), LATER)
    assert reason in decision.reason
    with pytest.raises(NodefallError):
        prune(decision)
    assert (directory / JOURNAL).exists()


def test_what_becomes_pending_after_the_selection_stays(tmp_path: Path) -> None:
    directory = old_run(tmp_path)
    (decision,) = select(read_runs(tmp_path), PruneRules(keep=0), LATER)
    assert not decision.reason
    _pending(directory)
    with pytest.raises(Refused, match="an undo is pending"):
        prune(decision)
    assert (directory / RESULT).exists()


def test_a_directory_that_is_replaced_by_a_link_after_the_selection_stays(tmp_path: Path) -> None:
    directory = old_run(tmp_path)
    (decision,) = select(read_runs(tmp_path), PruneRules(keep=0), LATER)
    elsewhere = directory.rename(tmp_path / "elsewhere")
    directory.symlink_to(elsewhere)
    with pytest.raises(NodefallError, match="symbolic link"):
        prune(decision)
    assert (elsewhere / RESULT).exists()


def test_a_journal_in_use_stays(tmp_path: Path) -> None:
    directory = old_run(tmp_path)
    (decision,) = select(read_runs(tmp_path), PruneRules(keep=0), LATER)
    with Journal(directory), pytest.raises(Refused, match="going on"):
        prune(decision)
    assert (directory / RESULT).exists()


def test_a_run_that_goes_on_or_may_go_on_stays(tmp_path: Path) -> None:
    directory = store(tmp_path, None)
    with Journal(directory):
        assert list(reasons(tmp_path).values()) == ["it is going on"]
    written = max(path.stat().st_mtime for path in (*directory.iterdir(), directory))
    assert "within the last hour" in next(iter(reasons(tmp_path, now=written + 3599).values()))
    (directory / JOURNAL).unlink()  # as a run that was killed before it had one
    written = directory.stat().st_mtime
    assert "within the last hour" in next(iter(reasons(tmp_path, now=written + 3599).values()))
    assert list(reasons(tmp_path, now=written + 3601).values()) == [""]


def test_what_an_interrupted_deletion_leaves_is_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = old_run(tmp_path)
    files = len(list(directory.iterdir()))
    unlink, left = os.unlink, files - 1

    def stop_at_the_last(name: str, *, dir_fd: int) -> None:
        nonlocal left
        if not left:
            raise OSError(5, "Input/output error", name)
        left -= 1
        unlink(name, dir_fd=dir_fd)

    (decision,) = select(read_runs(tmp_path), PruneRules(keep=0), LATER)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", stop_at_the_last)
        with pytest.raises(NodefallError, match=r"cannot delete run\.json: Input/output error"):
            prune(decision)
    assert [path.name for path in directory.iterdir()] == [RUN]
    assert list(reasons(tmp_path).values()) == [""]


def test_the_lock_is_held_while_files_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = old_run(tmp_path)
    (decision,) = select(read_runs(tmp_path), PruneRules(keep=0), LATER)
    journal = os.open(directory / JOURNAL, os.O_RDWR)
    unlink = os.unlink

    def check(name: str, *, dir_fd: int) -> None:
        with pytest.raises(BlockingIOError):
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", check)
    prune(decision)
    os.close(journal)
    assert not directory.exists()
