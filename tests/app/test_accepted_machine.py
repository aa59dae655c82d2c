"""What a person accepts in the place of a node, and what nobody can accept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from chaos.app.accepted_machine import accept_machines
from chaos.app.connect import ClusterConnection
from chaos.hosts.pool import Hosts, UnknownFact
from chaos.model.action import FactCheck, Undo
from chaos.model.errors import NodefallError, Refused, UsageError
from chaos.store.journal import Journal, read_pending
from tests.kit.fakes import FakeClock, FakeKube, FakeProgress
from tests.kit.preflightkit import inventory

KEY, ID, POWER = FactCheck("host-key", "a"), FactCheck("stable-id", "machine a"), FactCheck("power-identity", "a")


class Machines:
    """What can be read of each node; nothing of those that are not listed."""

    def __init__(self, found: Mapping[str, Mapping[str, Any]]) -> None:
        self._found = found

    def read(self, node: str, fact: str) -> Any:
        if fact not in self._found.get(node, {}):
            raise UnknownFact(f"{fact} of {node}: the machine is off")
        return self._found[node][fact]


def accept(folder: Path, nodes: tuple[str, ...], found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The notes; n1 has two pending steps, and n2 one."""
    clock, progress = FakeClock(), FakeProgress()
    hosts = cast("Hosts", Machines(found))
    connection = ClusterConnection(inventory(), clock, FakeKube({}), hosts, "uid", "v1.36.2", None, None)
    with Journal(folder) as journal:
        journal.record_intent("stop", "kubelet-stop", "n1", Undo(), 1.0, (KEY, ID))
        journal.record_intent("cut", "power-cut", "n1", Undo(), 2.0, (ID, POWER))
        journal.record_intent("stop", "kubelet-stop", "n2", Undo(), 3.0, (KEY,))
        accept_machines(journal, nodes, connection, progress)
    return progress.reports


def identities(folder: Path) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {(e.node, e.step): tuple(check.value for check in e.identity) for e in read_pending(folder)}


def test_all_entries_of_the_node_are_about_the_machine_that_is_there(tmp_path: Path) -> None:
    now = {"host-key": "b", "stable-id": "machine b", "power-identity": "a"}
    notes = accept(tmp_path, ("n1",), {"n1": now})
    assert identities(tmp_path) == {
        ("n1", "stop"): ("b", "machine b"),
        ("n1", "cut"): ("machine b", "a"),
        ("n2", "stop"): ("a",),
    }
    assert [note.partition(": accepted by ")[0] for note in notes] == ["n1", "n1"]
    assert notes[0].endswith(": host-key is b (it was a)") or notes[1].endswith(": host-key is b (it was a)")


def test_the_machine_of_the_run_needs_no_acceptance(tmp_path: Path) -> None:
    before = (tmp_path / "journal.jsonl", accept(tmp_path, ("n2",), {"n2": {"host-key": "a"}}))
    assert before[1] == ["n2 is the machine of the run: there is nothing to accept"]
    assert b"accepted" not in before[0].read_bytes()


@pytest.mark.parametrize(
    ("node", "found", "error", "why"),
    [
        ("n1", {"host-key": "b"}, Refused, "cannot accept the machine of n1: .* the machine is off"),
        ("n2", {}, Refused, "cannot accept the machine of n2: host-key of n2: the machine is off"),
        ("n3", {}, UsageError, "--accept-machine n3: the run has no pending undo there"),
    ],
)
def test_what_cannot_be_read_is_not_accepted(
    tmp_path: Path, node: str, found: dict[str, str], error: type[NodefallError], why: str
) -> None:
    with pytest.raises(error, match=why):
        accept(tmp_path, (node,), {node: found})
    assert b"accepted" not in (tmp_path / "journal.jsonl").read_bytes()
