"""A damaged journal: its intact lines, and the journal that takes its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.core.action import FactCheck, Undo
from chaos.core.errors import BadInput, NodefallError, Refused
from chaos.core.store.journal import NAME, Journal, read_intact, read_pending, replace_damaged
from chaos.core.store.journal_format import entry_key

UNDO = Undo(proof=(FactCheck("node-ready", True),))


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Three operations, the second one's line is damaged; the first is undone."""
    with Journal(tmp_path) as journal:
        entries = [journal.record_intent(name, "kubelet-stop", name, UNDO, 1.0) for name in ("a", "b", "c")]
        journal.mark_undone(entries[0], "seen")
    lines = (tmp_path / NAME).read_bytes().splitlines(keepends=True)
    lines[1] = lines[1][:20] + b"\xff\x00" + lines[1][22:]
    (tmp_path / NAME).write_bytes(b"".join(lines))
    with pytest.raises(BadInput, match="the journal is damaged") as caught:
        Journal(tmp_path)
    assert f"nodefall undo {tmp_path}" in caught.value.problems[0].hint
    return tmp_path


def test_intact_lines_are_pending_whatever_the_others_said(damaged: Path) -> None:
    assert [entry.step for entry in read_intact(damaged)] == ["a", "c"]


def test_the_new_journal_takes_the_place_of_the_damaged_one(damaged: Path) -> None:
    before = (damaged / NAME).read_bytes()
    intact = read_intact(damaged)
    saved = replace_damaged(damaged, intact, has_replica=True)
    assert saved.read_bytes() == before
    with Journal(damaged) as journal:
        assert [entry_key(entry) for entry in reversed(journal.pending())] == [entry_key(entry) for entry in intact]
        assert journal.has_replica
        assert journal.record_intent("d", "kubelet-stop", "d", UNDO, 2.0).id == 3
    assert (damaged / NAME).stat().st_mode & 0o777 == 0o600


def test_each_damaged_one_is_saved(damaged: Path) -> None:
    names = [replace_damaged(damaged, (), has_replica=False).name for _ in range(2)]
    assert names == ["journal.damaged-1", "journal.damaged-2"]
    assert read_pending(damaged) == []


def test_a_journal_in_use_is_not_replaced(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(Refused, match="is in use"):
        replace_damaged(tmp_path, (), has_replica=False)
    assert not list(tmp_path.glob("*damaged*"))


def test_a_journal_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(NodefallError, match="cannot read the journal"):
        read_intact(tmp_path)
