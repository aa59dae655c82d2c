"""The journal survives what machines do to files.

A damaged journal: its intact lines, and the journal that takes its place.
"""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.core.action import FactCheck, Undo, UndoStep
from chaos.core.command import (
    DrainRules,
    HostCommand,
    KubeCommand,
    PodsCommand,
    PodSelector,
    PodVerb,
    PowerCommand,
    PowerVerb,
    TaintsCommand,
)
from chaos.core.errors import BadInput, NodefallError, Refused
from chaos.core.store.journal import NAME, Journal, read_intact, read_pending, replace_damaged
from chaos.core.store.journal_format import AcceptedMachine, entry_key

UNDO = Undo(
    (
        UndoStep(PowerCommand(PowerVerb.ON), unless=FactCheck("machine", "on")),
        UndoStep(HostCommand(("systemctl", "restart", "kubelet")), grace_seconds=3.5),
        UndoStep(KubeCommand("DELETE", "/api/v1/namespaces/x", accept=(200, 404))),
        UndoStep(TaintsCommand("n1", ("a:NoExecute",), ({"key": "k", "effect": "NoSchedule"},))),
        UndoStep(PodsCommand(PodVerb.EVICT, PodSelector(node="n1"), grace=0, wait=60.0, rules=DrainRules(force=True))),
    ),
    (FactCheck("node-ready", True),),
)
READY_UNDO = Undo(proof=(FactCheck("node-ready", True),))


def steps(journal: Journal) -> list[str]:
    return [entry.step for entry in journal.pending()]


def test_last_in_first_out_and_across_a_crash(tmp_path: Path) -> None:
    first = Journal(tmp_path)
    first.record_intent("a", "poweroff", "n1", UNDO, 1.0)
    b = first.record_intent("b", "poweroff", "n2", UNDO, 2.0)
    assert steps(first) == ["b", "a"]
    first._file.close()  # the process was killed: the lock ends with it
    second = Journal(tmp_path)
    assert steps(second) == ["b", "a"]
    assert second.pending()[0].undo == UNDO
    second.mark_undone(b, "n2 is on")
    second.record_intent("c", "reboot", "n3", Undo(), 3.0)
    assert [entry.step for entry in read_pending(tmp_path)] == ["c", "a"]


def test_an_accepted_machine_replaces_the_checks_of_its_node_for_good(tmp_path: Path) -> None:
    key, machine, power = (
        FactCheck("host-key", "a"),
        FactCheck("stable-id", "machine a"),
        FactCheck("power-identity", "a"),
    )
    now = (FactCheck("host-key", "b"), FactCheck("stable-id", "machine b"))
    with Journal(tmp_path) as journal:
        journal.record_intent("stop", "kubelet-stop", "n1", UNDO, 1.0, (key, machine))
        journal.record_intent("cut", "power-cut", "n1", UNDO, 2.0, (machine, power))
        journal.record_intent("stop", "kubelet-stop", "n2", UNDO, 3.0, (key, machine))
        journal.accept_machine(AcceptedMachine("n1", now, (key, machine), 4.0, "ann@desk"))
        journal.record_intent("late", "kubelet-stop", "n1", UNDO, 5.0, (key,))
    for pending in (read_pending(tmp_path), Journal(tmp_path).pending()):
        late, other, cut, stop = pending
        assert stop.identity == now
        assert cut.identity == (now[1], power)  # the power control was not looked at
        assert other.identity == (key, machine)
        assert late.identity == (key,)


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_partial_last_line_was_never_acted_upon(tmp_path: Path, cut: int) -> None:
    with Journal(tmp_path) as journal:
        journal.record_intent("a", "poweroff", "n1", UNDO, 1.0)
        journal.record_intent("b", "poweroff", "n2", UNDO, 2.0)
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:-cut])
    with Journal(tmp_path) as journal:
        assert steps(journal) == ["a"]
        journal.record_intent("c", "poweroff", "n3", UNDO, 3.0)
    with Journal(tmp_path) as journal:
        assert steps(journal) == ["c", "a"]


def test_damage_in_the_middle_is_an_error(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.record_intent("a", "poweroff", "n1", UNDO, 1.0)
    (tmp_path / NAME).write_bytes(b"\x00\x00\n" + (tmp_path / NAME).read_bytes())
    with pytest.raises(BadInput, match="damaged"):
        Journal(tmp_path)


def test_a_line_that_is_nested_too_deep_is_damage(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"[" * 50_000 + b"\n")
    with pytest.raises(BadInput, match="damaged"):
        read_pending(tmp_path)


def test_a_journal_in_use_is_left_alone_and_can_be_read(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.record_intent("a", "poweroff", "n1", UNDO, 1.0)
        with (tmp_path / NAME).open("ab") as file:
            file.write(b'{"half')  # as if read while the run writes
        with pytest.raises(Refused, match="still going on"):
            Journal(tmp_path)
        assert [entry.step for entry in read_pending(tmp_path)] == ["a"]
        assert (tmp_path / NAME).read_bytes().endswith(b'{"half')
    with Journal(tmp_path) as journal:
        assert steps(journal) == ["a"]


def test_a_full_disk_is_an_error_and_leaves_no_partial_line(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        a = journal.record_intent("a", "poweroff", "n1", UNDO, 1.0)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / NAME).stat().st_size + 10, before[1]))
        try:
            with pytest.raises(NodefallError, match=r"cannot write the journal .*: File too large"):
                journal.record_intent("b", "poweroff", "n2", UNDO, 2.0)
            with pytest.raises(NodefallError, match="cannot write the journal"):
                journal.mark_undone(a, "n1 is on")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert steps(journal) == ["a"]
        journal.record_intent("c", "poweroff", "n3", UNDO, 3.0)
    assert [entry.step for entry in read_pending(tmp_path)] == ["c", "a"]


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"cannot write the journal .*: No such file"):
        Journal(tmp_path / "gone")


@settings(max_examples=30)
@given(st.lists(st.one_of(st.just("intend"), st.integers(0, 9)), max_size=30))
def test_pending_is_what_was_intended_and_not_undone(
    tmp_path_factory: pytest.TempPathFactory, moves: list[object]
) -> None:
    directory = tmp_path_factory.mktemp("journal")
    model: list[int] = []
    for move in moves:
        with Journal(directory) as journal:
            if move == "intend":
                model.append(journal.record_intent("s", "reboot", "n", Undo(), 0.0).id)
            elif isinstance(move, int) and move < len(model):
                journal.mark_undone(next(entry for entry in journal.pending() if entry.id == model[move]), "proof")
                del model[move]
    with Journal(directory) as journal:
        assert [entry.id for entry in journal.pending()] == sorted(model, reverse=True)


FORMER = """\
{"intent":{"id":1,"step":"cut","action":"partition","node":"n1","undo":{"steps":[{"command":{"type":"host","argv":["true"]},"patience":2.5,"sends":4}],"proof":[{"fact":"nodefall-rules","value":[]}],"disarm":"nodefall-x"},"t":1.0}}
{"mirrored":true}
{"intent":{"id":2,"step":"off","action":"poweroff","node":"n2","undo":{"steps":[{"command":{"type":"power","verb":"on"},"unless":{"fact":"machine","value":"on"}}],"proof":[{"fact":"node-ready","value":true}],"disarm":""},"t":2.0}}
{"struck":2,"because":"node-ready is True"}
"""


def test_a_journal_of_0_1_0_is_read_and_continued(tmp_path: Path) -> None:
    """Its words were struck, mirrored, patience and sends, and other names of facts."""
    (tmp_path / NAME).write_text(FORMER)
    (entry,) = read_pending(tmp_path)
    assert (entry.step, entry.undo.disarm) == ("cut", "nodefall-x")
    assert entry.undo.steps == (UndoStep(HostCommand(("true",)), grace_seconds=2.5, max_attempts=4),)
    assert entry.undo.proof == (FactCheck("nft-rules", []),)
    with Journal(tmp_path) as journal:
        assert journal.has_replica
        journal.mark_undone(entry, "proof")
        journal.record_replica(exists=False)
    lines = (tmp_path / NAME).read_text().splitlines()
    assert [json.loads(line) for line in lines[-2:]] == [
        {"undone": 1, "because": "proof", "version": 1},
        {"replica": False, "version": 1},
    ]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Three operations, the second one's line is damaged; the first is undone."""
    with Journal(tmp_path) as journal:
        entries = [journal.record_intent(name, "kubelet-stop", name, READY_UNDO, 1.0) for name in ("a", "b", "c")]
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
        assert journal.record_intent("d", "kubelet-stop", "d", READY_UNDO, 2.0).id == 3
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
