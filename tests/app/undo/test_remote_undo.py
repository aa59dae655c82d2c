"""The run directory of an undo from the cluster."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from chaos.app.undo.sources import create_directory
from chaos.core.errors import Refused
from chaos.core.store.journal import Journal
from chaos.core.store.run_directory import RUN, RunInfo, find, load

INFO = RunInfo("cut-1", "cut", 1.0, {"kind": "Inventory"}, cluster_uid="uid", cluster="uid")


def test_the_journal_of_a_copy_is_in_the_cluster(tmp_path: Path) -> None:
    directory = create_directory(INFO, tmp_path)
    assert find(tmp_path, "cut-1") == directory
    assert load(directory, RUN, RunInfo) == INFO
    with Journal(directory) as journal:
        assert (journal.has_replica, journal.pending()) == (True, [])


def test_a_full_disk_is_refused_and_does_not_hide_the_run(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        with pytest.raises(Refused, match=r"cannot write .*run\.json: File too large"):
            create_directory(INFO, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    made = create_directory(INFO, tmp_path)
    assert find(tmp_path, "cut-1") == made
