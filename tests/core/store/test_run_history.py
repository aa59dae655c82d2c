"""Stored runs are read as what they are, also damaged ones, and nothing is changed by reading.

Pending undo of run directories: those of this cluster, and those whose cluster is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos import __version__
from chaos.core.action import FactCheck, Undo
from chaos.core.result import RunState, UndoResult
from chaos.core.store.journal import NAME, Journal
from chaos.core.store.journal import NAME as JOURNAL
from chaos.core.store.run_directory import EXPERIMENT, PLAN, RESULT, RUN, RunInfo, find, save
from chaos.core.store.run_history import flocked_inodes, local_runs, read_run, read_runs
from tests.kit.stored_runs import DAY, NOW, UID, result_of, store, within

UNDO = Undo(proof=(FactCheck("node-ready", True),))


def test_a_finished_run(tmp_path: Path) -> None:
    run = read_run(store(tmp_path, result_of(within(3.0))))
    assert (run.state, run.verdict, run.run, run.name) == ("finished", "held", f"e-{int(NOW)}", "e/20261121T033533Z")
    assert (run.started, run.duration, run.targets) == (NOW, 100.0, {"victim": ("worker-1",)})
    assert (run.inventory, run.cluster_uid, run.cluster, run.hosts) == ("staging", UID, "staging 6f0c1a2b", 2)
    assert (run.pending, run.has_replica, run.problem, run.nodefall) == (False, False, "", __version__)
    assert len(run.experiment_hash) == 64


@pytest.mark.parametrize(
    ("headline", "verdict"),
    [
        ("aborted: a node was lost", "aborted"),
        ("refused: no steady state", "refused"),
        ("interrupted by SIGINT before every verdict was decided", "interrupted"),
        ("inconclusive: a blind window", "inconclusive"),
    ],
)
def test_the_verdict_is_how_the_run_ended(tmp_path: Path, headline: str, verdict: str) -> None:
    assert read_run(store(tmp_path, result_of(headline=headline, exit_code=2))).verdict == verdict


def test_the_newest_first_as_last_finds_them(tmp_path: Path) -> None:
    for day, experiment in ((2, "a"), (0, "b"), (1, "a"), (3, "c")):
        store(tmp_path, result_of(within(1.0), started=NOW + day * DAY, experiment=experiment))
    assert [run.experiment for run in read_runs(tmp_path)] == ["c", "a", "a", "b"]
    assert [run.started for run in read_runs(tmp_path, "a")] == [NOW + 2 * DAY, NOW + DAY]
    assert read_runs(tmp_path)[0].directory == find(tmp_path, "last")


@pytest.mark.parametrize("reports", ["missing", "file"])
def test_no_runs(tmp_path: Path, reports: str) -> None:
    (tmp_path / "file").write_text("")
    assert read_runs(tmp_path / reports) == read_runs(tmp_path / reports, "e") == []


def test_what_is_no_run_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "e" / "notes").mkdir(parents=True)
    (tmp_path / "e" / "notes" / "todo.txt").write_text("x")
    (tmp_path / "e" / "file").write_text("x")
    (tmp_path / "README.md").write_text("x")
    assert read_runs(tmp_path) == []


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    directory = store(tmp_path, None)
    with Journal(directory) as journal:
        journal.record_intent("s", "cordon", "n", Undo(proof=(FactCheck("node-ready", True),)), NOW)
        before = (directory / JOURNAL).read_bytes()
        assert read_run(directory).state is RunState.RUNNING
        assert (directory / JOURNAL).read_bytes() == before
    killed = read_run(directory)
    assert (killed.state, killed.verdict, killed.pending, killed.targets) == ("no-result", "no-result", True, None)


def test_targets_of_a_run_without_a_result_are_those_of_its_plan(tmp_path: Path) -> None:
    directory = store(tmp_path, None)
    (directory / PLAN).write_text(json.dumps({"run": "r", "targets": [{"target": "t", "node": n} for n in "ab"]}))
    assert read_run(directory).targets == {"t": ("a", "b")}


def _directory(directory: Path) -> None:
    (directory / RESULT).unlink()
    (directory / RESULT).mkdir()


def _dangling_link(directory: Path) -> None:
    (directory / RESULT).unlink()
    (directory / RESULT).symlink_to("nowhere")


def _all_but_the_result(directory: Path) -> None:
    for name in (RUN, JOURNAL, EXPERIMENT):
        (directory / name).unlink()


DAMAGE: list[tuple[str, Callable[[Path], object], str, bool | None, str]] = [
    ("result", lambda d: (d / RESULT).write_bytes(b"{"), "damaged", False, RESULT),
    ("no UTF-8", lambda d: (d / RESULT).write_bytes(b"\xff"), "damaged", False, RESULT),
    ("another type", lambda d: (d / RESULT).write_bytes(b"[]"), "damaged", False, RESULT),
    ("deep", lambda d: (d / RESULT).write_bytes(b"[" * 100_000), "damaged", False, RESULT),
    ("a directory", _directory, "damaged", False, RESULT),
    ("dangling link", _dangling_link, "damaged", False, RESULT),
    ("info", lambda d: (d / RUN).write_bytes(b"\0"), "finished", False, RUN),
    ("no info", lambda d: (d / RUN).unlink(), "finished", False, RUN),
    ("inventory", lambda d: (d / RUN).write_bytes(_info(b'{"metadata": 3}')), "finished", False, ""),
    ("hosts", lambda d: (d / RUN).write_bytes(_info(b'{"cluster": [], "hosts": 7}')), "finished", False, ""),
    ("journal", lambda d: (d / JOURNAL).write_bytes(b"{\n"), "finished", None, JOURNAL),
    ("all but the result", _all_but_the_result, "finished", False, RUN),
]


def _info(inventory: bytes) -> bytes:
    return b'{"run": "r", "experiment": "e", "started": 1, "inventory": %s}' % inventory


@pytest.mark.parametrize(
    ("damage", "state", "pending", "named"), [case[1:] for case in DAMAGE], ids=[c[0] for c in DAMAGE]
)
def test_damage_is_described(
    tmp_path: Path, damage: Callable[[Path], object], state: str, pending: bool | None, named: str
) -> None:
    directory = store(tmp_path, result_of(within(1.0)))
    damage(directory)
    (run,) = read_runs(tmp_path)
    assert (run.state, run.pending) == (state, pending)
    assert named in run.problem
    assert bool(run.problem) is bool(named)


def test_an_undo_that_was_pending_when_the_journal_was_lost(tmp_path: Path) -> None:
    directory = store(tmp_path, result_of(within(1.0), undo=(UndoResult("s", "cordon", "n", False, "lost"),)))
    (directory / JOURNAL).unlink()
    run = read_run(directory)
    assert run.pending is None
    assert "is missing" in run.problem


def test_a_directory_that_cannot_be_read_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is made here."""
    closed = store(tmp_path, result_of(within(1.0)))
    store(tmp_path, result_of(within(1.0), started=NOW + 1))
    is_file = Path.is_file

    def refuse(path: Path) -> bool:
        if path.parent == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refuse)
    assert len(read_runs(tmp_path)) == 2


def test_locked_inodes_are_those_of_flock(tmp_path: Path) -> None:
    locks = tmp_path / "locks"
    locks.write_text(
        "1: POSIX  ADVISORY  WRITE 10 fe:01:11 0 EOF\n"
        "2: FLOCK  ADVISORY  WRITE 10 fe:01:12 0 EOF\n"
        "2: -> FLOCK  ADVISORY  WRITE 11 fe:01:13 0 EOF\n"
        "3: FLOCK  ADVISORY  WRITE -1 00:00:x 0 EOF\n"
        "broken\n"
    )
    assert flocked_inodes(locks) == {12}
    assert flocked_inodes(tmp_path / "missing") == frozenset()


def make_run(reports: Path, name: str, undo: Undo = UNDO, *, cluster: str = "", uid: str = "") -> Path:
    directory = reports / "e" / name
    directory.mkdir(parents=True)
    save(directory, RUN, RunInfo(f"e-{name}", "e", 1.0, {}, cluster_uid=uid, cluster=cluster))
    with Journal(directory) as journal:
        journal.record_intent("s", "cordon", "n1", undo, 1.0)
    return directory


@pytest.mark.parametrize(
    ("cluster", "uid", "counts"),
    [
        ("u", "u", True),
        ("", "u", True),  # of a version that wrote no `cluster`
        ("", "", False),  # of 0.1.0
        ("v", "v", False),
        ("u-lab", "u", False),  # a lab with the seed of another one
    ],
)
def test_only_runs_of_this_cluster(tmp_path: Path, cluster: str, uid: str, counts: bool) -> None:
    make_run(tmp_path, "a", cluster=cluster, uid=uid)
    assert [run.run for run in local_runs(tmp_path, "u")] == (["e-a"] if counts else [])


def test_a_lab_of_the_same_seed_is_another_cluster(tmp_path: Path) -> None:
    make_run(tmp_path, "a", uid="u")  # of a version that wrote no `cluster`: unknown for a lab
    make_run(tmp_path, "b", cluster="u-lab", uid="u")
    assert [run.run for run in local_runs(tmp_path, "u-lab")] == ["e-b"]


def test_what_is_pending(tmp_path: Path) -> None:
    make_run(tmp_path, "a", cluster="u")
    make_run(tmp_path, "b", Undo(), cluster="u")
    (make_run(tmp_path, "c", cluster="u") / NAME).write_bytes(b"{\n")
    (make_run(tmp_path, "d", cluster="u") / NAME).write_bytes(b"")
    (make_run(tmp_path, "f", cluster="v") / NAME).write_bytes(b"{\n")  # damaged, of another cluster
    (make_run(tmp_path, "g", cluster="u") / NAME).unlink()
    (make_run(tmp_path, "h", cluster="v") / RUN).write_bytes(b"{")
    with Journal(make_run(tmp_path, "i", cluster="u")) as journal:
        journal.mark_undone(journal.pending()[0], "it is Ready")
    found = {run.run: run for run in local_runs(tmp_path, "u")}
    assert sorted(found) == ["", "e-a", "e-b", "e-c", "e-d", "e-i"]
    assert {name: set(run.undone) for name, run in found.items() if run.undone} == {"e-i": {("s", "cordon", "n1", 1.0)}}
    assert sorted(name for name, run in found.items() if run.has_pending) == ["", "e-a", "e-c"]
    assert [name for name, run in found.items() if run.is_readable] == ["e-a", "e-b", "e-d", "e-i"]
    assert "journal.jsonl:1: the journal is damaged" in found["e-c"].error
    assert [entry.step for entry in found["e-a"].pending] == ["s"]


def test_no_directory_has_no_runs(tmp_path: Path) -> None:
    assert local_runs(tmp_path / "nowhere", "u") == []
