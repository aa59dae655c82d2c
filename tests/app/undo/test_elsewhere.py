"""What proves that another machine has undone an operation: the nodes, never the cluster alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.app.undo import elsewhere
from chaos.cluster.replica import PendingRun, ReplicaEntry, RunIdentity
from chaos.core.action import FactCheck, Undo, UndoStep
from chaos.core.command import HostCommand
from chaos.core.errors import NodefallError
from chaos.core.store.journal import Journal, read_entries
from chaos.core.store.journal_format import entry_key
from chaos.engine.connection import ClusterConnection

UNDO = Undo((UndoStep(HostCommand(("true",))),), (FactCheck("kubelet-state", "active"),), "nodefall-x")
UNDONE: dict[str, Any] = {"kubelet-state": "active", "machine-id": "m", "failsafe-timers": []}
SAME = (FactCheck("machine-id", "m"),)


class FactHosts:
    """Hosts whose facts are given; what is missing cannot be read. Nothing can be sent."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts

    def read(self, node: str, fact: str) -> Any:
        if fact not in self.facts:
            raise NodefallError(f"{fact} of {node} cannot be read")
        return self.facts[fact]

    def check(self, node: str, check: FactCheck) -> tuple[bool, str]:
        value = self.read(node, check.fact)
        return value == check.value, f"{check.fact} is {value}"


def learned(
    folder: Path, facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, copy: str = "", published: bool = True
) -> tuple[bool, list[str]]:
    """Whether the entry of a journal is undone, and the notes. ``copy``: what the cluster has: pending or damaged."""
    with Journal(folder) as journal:
        if published:
            journal.record_replica(exists=True)
        entry = journal.record_intent("stop", "kubelet-stop", "n1", UNDO, 100.0, SAME)
    remote = ReplicaEntry(1, "stop", "kubelet-stop", "n1", 100.0)
    found = PendingRun("c", RunIdentity("r", "x", 1.0), (remote,), "torn" if copy == "damaged" else "")
    monkeypatch.setattr(elsewhere, "find_replica", lambda *_: found if copy else None)
    monkeypatch.setattr(elsewhere, "lock_namespace", lambda _: "kube-system")
    connection = SimpleNamespace(kube=None, hosts=FactHosts(facts), clock=SimpleNamespace(now=lambda: 1000.0))
    notes: list[str] = []
    elsewhere._learn(cast("ClusterConnection", connection), folder, "r", notes.append)
    pending, undone = read_entries(folder)
    assert bool(pending) is not bool(undone)
    return entry_key(entry) in undone, notes


def test_all_proofs_on_the_node_prove_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done, notes = learned(tmp_path, UNDONE, monkeypatch)
    assert done
    assert notes == ["stop on n1 of run r was undone on another machine: the kubelet is active"]


@pytest.mark.parametrize(
    ("facts", "given"),
    [
        (UNDONE, {"copy": "pending"}),
        (UNDONE, {"copy": "damaged"}),
        (UNDONE, {"published": False}),  # no copy was ever made
        (UNDONE | {"kubelet-state": "inactive"}, {}),
        (UNDONE | {"machine-id": "another"}, {}),
        (UNDONE | {"failsafe-timers": ["nodefall-x.timer"]}, {}),
        ({name: value for name, value in UNDONE.items() if name != "kubelet-state"}, {}),
        ({name: value for name, value in UNDONE.items() if name != "failsafe-timers"}, {}),
    ],
)
def test_what_is_in_doubt_stays_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], given: dict[str, Any]
) -> None:
    assert learned(tmp_path, facts, monkeypatch, **given) == (False, [])


def test_a_journal_in_use_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned(tmp_path, UNDONE, monkeypatch, copy="pending")
    with Journal(tmp_path):
        elsewhere._learn(cast("ClusterConnection", SimpleNamespace()), tmp_path, "r", pytest.fail)
    assert read_entries(tmp_path)[0]
