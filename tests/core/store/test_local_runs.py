"""Pending undo of run directories: those of this cluster, and those whose cluster is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.core.action import FactCheck, Undo
from chaos.core.store.journal import NAME, Journal
from chaos.core.store.run_directory import RUN, RunInfo, save
from chaos.core.store.run_history import local_runs

UNDO = Undo(proof=(FactCheck("node-ready", True),))


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
