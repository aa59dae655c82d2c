"""What ``nodefall undo`` prints of what is still pending: how to go on, also where nothing can be undone any more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.app.undo.finish import Undone
from chaos.app.undo.replica_entries import RejectedEntry
from chaos.cli.cluster.undo import _echo_result
from chaos.cluster.replica import ReplicaEntry
from chaos.core.action import FactCheck, Undo
from chaos.core.store.journal_format import PendingUndo

DIRECTORY = Path("my reports/cut/1")
PENDING = PendingUndo(1, "cut", "partition", "n1", Undo(proof=(FactCheck("nft-rules", 0),)), 1.0)
REJECTED = RejectedEntry(ReplicaEntry(1, "cut", "melt", "n1", 1.0), "the action melt is not installed here")
MENDABLE = RejectedEntry(
    ReplicaEntry(1, "off", "reboot", "n2", 1.0), "n2 runs windows", "set os: windows for its host, if that runs on it"
)
DELETE = "run kubectl -n chaos delete configmap nodefall-run-cut-1"
AGAIN = "hint: run nodefall undo 'my reports/cut/1' again; if only machines are left that are gone for good, move "


@pytest.mark.parametrize(
    ("undone", "code", "lines"),
    [
        (Undone(), 0, ["no pending undo in my reports/cut/1"]),
        (
            Undone(pending=(PENDING,), configmap="chaos/nodefall-run-cut-1"),
            3,
            [
                "pending undo: cut (partition) on n1",
                f"{AGAIN}'my reports/cut/1' out of the reports, then {DELETE}",
            ],
        ),
        (
            Undone(rejected=(REJECTED,), configmap="chaos/nodefall-run-cut-1"),
            3,
            [
                "not undone: cut (melt) on n1: the action melt is not installed here",
                f"hint: undo what is right of them by hand, then {DELETE}",
            ],
        ),
        (
            Undone(rejected=(MENDABLE, MENDABLE), configmap="chaos/nodefall-run-cut-1"),
            3,
            [
                "not undone: off (reboot) on n2: n2 runs windows",
                "not undone: off (reboot) on n2: n2 runs windows",
                "hint: set os: windows for its host, if that runs on it, then undo again",
            ],
        ),
    ],
    ids=["nothing", "pending", "rejected", "rejected for want of what can be set"],
)
def test_the_way_out(undone: Undone, code: int, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _echo_result(DIRECTORY, undone, as_json=False) == code
    assert capsys.readouterr().err.splitlines() == lines
    assert _echo_result(DIRECTORY, undone, as_json=True) == code
    assert json.loads(capsys.readouterr().out)["pendingUndo"] == [
        {"step": "cut", "action": "partition", "node": "n1"} for _ in undone.pending
    ]
