"""The table of runs: one line each, aligned, with a note for what a reader must know."""

from __future__ import annotations

import json
from pathlib import Path

from chaos import __version__
from chaos.core.action import FactCheck, Undo
from chaos.core.store.journal import NAME as JOURNAL
from chaos.core.store.journal import Journal
from chaos.core.store.run_directory import RESULT
from chaos.core.store.run_history import read_runs
from chaos.reports.run.summary import run_row, runs_table
from tests.kit.stored_runs import DAY, NOW, result_of, store, within


def table(reports: Path) -> list[str]:
    return [line.replace(f"{reports}/", "") for line in runs_table(read_runs(reports), __version__)]


def test_every_kind_of_run(tmp_path: Path) -> None:
    store(tmp_path, result_of(within(1.0)))
    many = {"a": ("n1", "n2"), "b": ("n2", "n3", "n4", "n5")}
    store(tmp_path, result_of(within(50.0), started=NOW + DAY, targets=many, simulated=True), nodefall="0.1.9")
    (store(tmp_path, result_of(started=NOW + 2 * DAY)) / RESULT).write_bytes(b"{")
    killed = store(tmp_path, None, started=NOW + 3 * DAY, by="ops@bastion/17")
    with Journal(killed) as journal:
        journal.record_intent("s", "cordon", "n", Undo(proof=(FactCheck("node-ready", True),)), NOW)
    with Journal(store(tmp_path, None, started=NOW + 4 * DAY)) as journal:
        journal.record_intent("s", "cordon", "n", Undo(proof=(FactCheck("node-ready", True),)), NOW)
        lines = table(tmp_path)
    assert "\n".join(lines) + "\n" == (Path(__file__).parent / "runs_table.txt").read_text(encoding="utf-8")


def test_an_unknown_journal(tmp_path: Path) -> None:
    (store(tmp_path, result_of(within(1.0))) / JOURNAL).write_bytes(b"{\n")
    lines = table(tmp_path)
    assert lines[2] == "  whether an undo is pending is unknown"
    assert lines[3].startswith("  damaged: e/20261121T033533Z/journal.jsonl:1: the journal is damaged")


def test_text_of_others_stays_on_its_line(tmp_path: Path) -> None:
    hostile = "\x1b[2J\nheld\u202e"
    targets = {"t": (hostile,)}
    store(tmp_path, result_of(within(1.0), run=hostile, targets=targets), run=hostile, nodefall=hostile)
    lines = table(tmp_path)
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)


def test_a_row_is_json(tmp_path: Path) -> None:
    store(tmp_path, result_of(within(1.0)))
    (run,) = read_runs(tmp_path)
    row = json.loads(json.dumps(run_row(run)))
    assert (row["name"], row["verdict"], row["exit_code"]) == ("e/20261121T033533Z", "held", 0)
    assert (row["started"], row["duration"], row["undo_pending"]) == (NOW, 100.0, False)
