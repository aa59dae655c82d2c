"""The union of all sources of pending undo: nothing is lost, nothing is named twice, and each hint works."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from chaos.app.undo.pending import UndoSources
from chaos.cluster.replica import PendingRun, ReplicaEntry, RunIdentity
from chaos.core.action import FactCheck, Undo
from chaos.core.node_mark import FoundMark, NodeMark
from chaos.core.result import PendingUndoFinding, Source
from chaos.core.store.journal_format import PendingUndo, entry_key
from chaos.core.store.run_history import LocalRun

REPORTS, DIRECTORY = Path("out"), Path("out/cordon/1")
RUN = "cordon-1f5458"
ENTRY = PendingUndo(1, "cordon", "cordon", "n1", Undo(proof=(FactCheck("x", None),)), 1.0)
COPY = ReplicaEntry(1, "cordon", "cordon", "n1", 1.0, {})
NOTHING = PendingUndo(2, "evict", "evict-pod", "n1", Undo(), 1.0)
MARK = NodeMark(RUN, "cordon", cordoned=False)
LOCAL = {
    "absent": (),
    "pending": (LocalRun(DIRECTORY, RUN, (ENTRY,)),),
    "undone": (LocalRun(DIRECTORY, RUN, (NOTHING,)),),
    "proven": (LocalRun(DIRECTORY, RUN, (NOTHING,), undone=frozenset({entry_key(ENTRY)})),),
    "damaged": (LocalRun(DIRECTORY, RUN, error="journal.jsonl:1: damaged"),),
    "unknown": (LocalRun(DIRECTORY, "", (ENTRY,)),),
}
CLUSTER = {
    "absent": (),
    "pending": (PendingRun(f"nodefall-run-{RUN}", RunIdentity(RUN, "cordon", 1.0, "ann@a/1"), (COPY,)),),
    "undone": (PendingRun(f"nodefall-run-{RUN}", RunIdentity(RUN, "cordon", 1.0, "ann@a/1")),),
    "damaged": (PendingRun(f"nodefall-run-{RUN}", RunIdentity(RUN, "", 0.0), error="no JSON"),),
}
COMMANDS = ("kubectl uncordon n1",)
MARKS = {
    "absent": (),
    "pending": (FoundMark("n1", MARK.key, MARK, "7", COMMANDS),),
    "stale": (FoundMark("n1", MARK.key, MARK, "7"),),
    "damaged": (FoundMark("n1", "pending-undo.nodefall.dev/x", None, "7"),),
}
STATES = list(product(LOCAL, CLUSTER, MARKS))


def findings(local: str, cluster: str, marks: str) -> list[PendingUndoFinding]:
    return UndoSources(REPORTS, "kube-system", LOCAL[local], CLUSTER[cluster], MARKS[marks]).findings()


@pytest.mark.parametrize(("local", "cluster", "marks"), STATES)
def test_nothing_is_lost_and_nothing_is_named_twice(local: str, cluster: str, marks: str) -> None:
    found = findings(local, cluster, marks)
    if (local, cluster) == ("proven", "pending"):
        cluster = "undone"  # the journal of the run knows better: the copy was left, or put back
    open_sources = {local, cluster, marks} - {"absent", "undone", "proven", "stale"}
    assert bool(found) == bool(open_sources)
    sources = [each.source for each in found]
    assert len(set(sources)) == len(sources)
    if local == "pending":
        # The undo of an intact journal includes the copy and the mark of its run.
        assert found[0].source is Source.JOURNAL
        assert sources[1:] == ([Source.NODE] if marks == "damaged" else [])
    else:
        assert (Source.JOURNAL in sources) == (local in ("damaged", "unknown"))
        # The undo of a damaged journal uses the copy.
        assert (Source.CLUSTER in sources) == (cluster in ("pending", "damaged") and local != "damaged")
        known = cluster == "pending"
        assert (Source.NODE in sources) == (marks == "damaged" or (marks == "pending" and not known))


@pytest.mark.parametrize(("local", "cluster", "marks"), STATES)
def test_no_hint_is_a_command_that_does_nothing_or_fails(local: str, cluster: str, marks: str) -> None:
    for finding in findings(local, cluster, marks):
        undo = re.search(r"run nodefall undo (\S+?)(;|$| --inventory FILE(?: --reports (\S+))?| on )", finding.hint)
        first = finding.hint.partition(";")[0]
        if finding.source is Source.JOURNAL:
            assert undo is None or undo[1] == str(DIRECTORY)
            # A damaged journal ends in something that always works.
            assert local == "pending" or finding.hint.endswith(f"then move {DIRECTORY} out of {REPORTS}")
        elif finding.source is Source.CLUSTER and cluster == "pending":
            assert undo
            assert undo[1] == RUN
            # A run directory with that ID would be found first, and it lacks the entry.
            assert bool(undo[3]) == (local == "undone")
            assert undo[3] in (None, "out-undo")
        elif finding.source is Source.CLUSTER:
            assert finding.hint.endswith(f"kubectl -n kube-system delete configmap nodefall-run-{RUN}")
        elif marks == "pending":
            assert ("nodefall undo" in first) == (local in ("absent", "unknown"))
            assert first.startswith("if the mark is still there") == (local == "damaged")
            assert f"run kubectl uncordon n1; kubectl annotate node n1 {MARK.key}-" in finding.hint
        else:
            assert finding.hint.endswith("run kubectl annotate node n1 pending-undo.nodefall.dev/x-")


DESCRIPTIONS = [
    (("pending", "pending", "pending"), [f"run {RUN} has a pending undo: cordon on n1"]),
    (("absent", "pending", "pending"), [f"run {RUN} has a pending undo: cordon on n1 (by ann@a/1)"]),
    (
        ("damaged", "absent", "pending"),
        [
            f"run {RUN} has a pending undo: unknown: journal.jsonl:1: damaged",
            f"run {RUN} has a pending undo: cordon on n1, as an annotation of the Node shows",
        ],
    ),
    (("damaged", "pending", "pending"), [f"run {RUN} has a pending undo: cordon on n1: journal.jsonl:1: damaged"]),
    (
        ("undone", "damaged", "stale"),
        [f"run {RUN} has a pending undo: unknown: the journal is unreadable (no JSON)"],
    ),
    (
        ("unknown", "absent", "absent"),
        [f"an unknown run has a pending undo: cordon on n1; {DIRECTORY}/run.json is unreadable"],
    ),
    (
        ("absent", "absent", "damaged"),
        ["an unknown run has a pending undo: unknown: the annotation pending-undo.nodefall.dev/x of n1 is unreadable"],
    ),
]


@pytest.mark.parametrize(("states", "expected"), DESCRIPTIONS)
def test_descriptions(states: tuple[str, str, str], expected: list[str]) -> None:
    assert [str(finding) for finding in findings(*states)] == expected


def test_a_mark_of_another_step_of_a_recorded_run_is_named() -> None:
    other = NodeMark(RUN, "taint", taints={"k:NoSchedule": None})
    mark = FoundMark("n1", other.key, other, "7", ("kubectl taint node n1 k:NoSchedule-",))
    found = UndoSources(REPORTS, "kube-system", LOCAL["pending"], (), (*MARKS["pending"], mark)).findings()
    assert [each.source for each in found] == [Source.JOURNAL, Source.NODE]
    assert "taint on n1" in found[1].description
