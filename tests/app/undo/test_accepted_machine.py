"""What a person accepts in the place of a node, and what cannot be accepted."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from chaos.app.undo.finish import accept_machines
from chaos.app.undo.sources import create_directory
from chaos.cluster.cluster_state import UnknownFact
from chaos.core.action import FactCheck, Undo
from chaos.core.errors import NodefallError, Refused, UsageError
from chaos.core.ports import Response
from chaos.core.store.journal import Journal, read_pending
from chaos.core.store.run_directory import RUN, RunInfo, find, load
from chaos.engine.connection import ClusterConnection
from chaos.machines.pool import Hosts
from tests.kit.fakes import FakeClock, FakeKube
from tests.kit.preflightkit import inventory

KEY, ID, POWER = FactCheck("host-key", "a"), FactCheck("stable-id", "container a"), FactCheck("power-identity", "a")
NEW = {"host-key": "b", "stable-id": "container b", "power-identity": "a", "kubelet-user": "system:node:n1"}
NODES = [{"metadata": {"name": name}, "status": {"nodeInfo": {"machineID": name * 16}}} for name in ("n1", "n2")]


class Machines:
    """What can be read of each node; nothing of those that are not listed."""

    def __init__(self, found: Mapping[str, Mapping[str, Any]]) -> None:
        self._found = found

    def read(self, node: str, fact: str) -> Any:
        if fact not in self._found.get(node, {}):
            raise UnknownFact(f"{fact} of {node}: the machine is off")
        return self._found[node][fact]


def accept(
    folder: Path, nodes: tuple[str, ...], found: Mapping[str, Mapping[str, Any]], *, agrees: bool = True
) -> list[str]:
    """What was shown before it was accepted. n1 has two pending steps and one on the API, n2 has one."""
    shown: list[str] = []

    def confirm(node: str, changes: list[str]) -> None:
        shown.extend(f"{node}: {line}" for line in changes)
        if not agrees:
            raise Refused("not confirmed")

    kube: Any = FakeKube({"/api/v1/nodes": Response(200, msgspec.json.encode({"items": NODES}), {})})
    hosts, clock = cast("Hosts", Machines(found)), cast("Any", FakeClock())
    connection = ClusterConnection(inventory(), clock, kube, hosts, "uid", "v1.36.2", None, None)
    with Journal(folder) as journal:
        journal.record_intent("stop", "kubelet-stop", "n1", Undo(), 1.0, (KEY, ID))
        journal.record_intent("cut", "power-cut", "n1", Undo(), 2.0, (ID, POWER))
        journal.record_intent("stop", "kubelet-stop", "n2", Undo(), 3.0, (KEY,))
        journal.record_intent("taint", "taint", "n4", Undo(), 4.0)
        accept_machines(journal, nodes, connection, confirm)
    return shown


def identities(folder: Path) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {(e.node, e.step): tuple(check.value for check in e.identity) for e in read_pending(folder)}


def test_all_entries_of_the_node_are_about_the_machine_that_is_there(tmp_path: Path) -> None:
    shown = accept(tmp_path, ("n1", "n1"), {"n1": NEW})
    assert identities(tmp_path) == {
        ("n1", "stop"): ("b", "container b"),
        ("n1", "cut"): ("container b", "a"),
        ("n2", "stop"): ("a",),
        ("n4", "taint"): (),
    }
    assert sorted(shown) == ["n1: host-key: b (it was a)", "n1: stable-id: container b (it was container a)"]


def test_a_value_that_the_machine_does_not_have_is_checked_no_more(tmp_path: Path) -> None:
    """Another one is left: a host without any is not accepted."""
    accept(tmp_path, ("n1",), {"n1": {name: NEW[name] for name in ("host-key", "power-identity", "kubelet-user")}})
    assert identities(tmp_path)["n1", "stop"] == ("b",)
    assert identities(tmp_path)["n1", "cut"] == ("a",)


@pytest.mark.parametrize(
    ("node", "found", "error", "why"),
    [
        ("n1", {}, Refused, "nothing readable on it shows that it is the Node's machine"),
        ("n1", {"kubelet-user": "system:node:n1"}, Refused, "the machine is off"),
        ("n1", {name: value for name, value in NEW.items() if name != "power-identity"}, Refused, "the machine is off"),
        ("n1", NEW | {"kubelet-user": "system:node:n2"}, Refused, "client certificate on the host is that of system:n"),
        ("n1", NEW | {"machine-id": "n2" * 16}, Refused, "the Node's machine ID is "),
        ("n2", {"host-key": "a", "kubelet-user": "system:node:n2"}, UsageError, "the machine of the run is there"),
        ("n3", NEW, UsageError, "--accept-machine n3: the run has no pending undo there"),
        ("n4", NEW, UsageError, "--accept-machine n4: no pending undo there depends on a machine"),
    ],
)
def test_what_cannot_be_read_is_not_accepted(
    tmp_path: Path, node: str, found: dict[str, str], error: type[NodefallError], why: str
) -> None:
    with pytest.raises(error, match=why):
        accept(tmp_path, (node,), {node: found})
    assert b"accepted" not in (tmp_path / "journal.jsonl").read_bytes()


def test_what_is_not_confirmed_is_not_accepted(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="not confirmed"):
        accept(tmp_path, ("n1",), {"n1": NEW}, agrees=False)
    assert b"accepted" not in (tmp_path / "journal.jsonl").read_bytes()


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
