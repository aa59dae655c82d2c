"""What a damaged run.json leaves: the plan names the run, and an inventory is all that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.app.undo.sources import load_info, load_plan
from chaos.core.errors import UsageError
from chaos.core.plan import Plan
from chaos.core.store.run_directory import PLAN, RUN, RunInfo, find, save

PLANNED = Plan("cut-1", "cut", "", "uid-1", 7.0, 1, (), ())
INFO = RunInfo("cut-1", "cut", 7.0, {"kind": "Inventory"}, cluster_uid="uid-1", by="ann@a/1")
DAMAGED = [None, b"", b"{", b"\xff\xfe", b"[]", b"[" * 50_000, b'{"a":' * 50_000]


@pytest.mark.parametrize("damaged", DAMAGED)
def test_the_plan_stands_in(tmp_path: Path, damaged: bytes | None) -> None:
    directory = tmp_path / "cut" / "1"
    directory.mkdir(parents=True)
    save(directory, PLAN, PLANNED)
    if damaged is not None:
        (directory / RUN).write_bytes(damaged)
    assert find(tmp_path, "cut/1") == directory
    with pytest.raises(UsageError) as refused:
        load_info(directory, has_inventory=False)
    assert refused.value.hint.startswith("add --inventory FILE")
    found = load_info(directory, has_inventory=True)
    assert (found.run, found.experiment, found.started, found.cluster_uid) == ("cut-1", "cut", 7.0, "uid-1")
    assert found.by  # it is no copy: its plan is the authority


@pytest.mark.parametrize("damaged", DAMAGED)
def test_without_a_plan_only_the_cluster_knows(tmp_path: Path, damaged: bytes | None) -> None:
    if damaged is not None:
        (tmp_path / PLAN).write_bytes(damaged)
    assert load_plan(tmp_path) is None
    with pytest.raises(UsageError) as refused:
        load_info(tmp_path, has_inventory=True)
    assert "nodefall undo --list --inventory FILE" in refused.value.hint


def test_an_intact_run_json_is_read(tmp_path: Path) -> None:
    save(tmp_path, RUN, INFO)
    assert load_info(tmp_path, has_inventory=True) == INFO
