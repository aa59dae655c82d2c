"""The replica of the journal: written before each operation, deleted when no undo is pending, readable anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.journal_mirror import JournalMirror, find_replica, pending_runs
from chaos.cluster.replica import ReplicaEntry, RunIdentity, Signer, configmap_name
from chaos.core.action import FactCheck, Undo
from chaos.core.errors import Aborted, NodefallError
from chaos.core.ports import Response
from chaos.core.store.journal import Journal
from chaos.core.store.journal_format import entry_key
from tests.kit.fakes import FakeKube

UNDO = Undo(proof=(FactCheck("node-ready", True),))


class ConfigMaps(FakeKube):
    """ConfigMaps by name; PUT creates none."""

    def __init__(self) -> None:
        super().__init__({})
        self.stored: dict[str, dict[str, Any]] = {}
        self.broken: Response | KubeUnreachable | None = None

    def answer(self, method: str, path: str, body: Any) -> Response:
        if isinstance(self.broken, KubeUnreachable):
            raise self.broken
        if self.broken:
            return self.broken
        name = path.removeprefix("/api/v1/namespaces/kube-system/configmaps").strip("/")
        if method == "GET":
            return Response(200, json.dumps({"items": list(self.stored.values())}).encode(), {})
        if method != "POST" and name not in self.stored:
            return Response(404, b'{"message": "not found"}', {})
        if method == "DELETE":
            del self.stored[name]
            return Response(200, b"{}", {})
        self.stored[body["metadata"]["name"]] = body
        return Response(200, json.dumps(body).encode(), {})


@pytest.fixture
def kube() -> ConfigMaps:
    return ConfigMaps()


@pytest.fixture
def mirror(kube: ConfigMaps, tmp_path: Path) -> JournalMirror:
    identity = RunIdentity("graceful-1", "graceful", 1000.0, "ann@here/1-ab")
    return JournalMirror(kube, "kube-system", identity, Journal(tmp_path), Signer("uid"))


def test_it_exists_while_an_undo_is_pending(kube: ConfigMaps, mirror: JournalMirror) -> None:
    first = mirror.journal.record_intent("a", "kubelet-stop", "n1", UNDO, 1.0)
    mirror.publish()
    second = mirror.journal.record_intent("b", "kubelet-stop", "n2", UNDO, 2.0)
    mirror.publish()
    (run,) = pending_runs(kube, "kube-system")
    assert (structs.replace(run.identity, format=1), run.has_pending) == (mirror.identity, True)
    assert [entry.key for entry in run.entries] == [entry_key(second), entry_key(first)]
    mirror.journal.mark_undone(second, "seen")
    assert mirror.reconcile() == ""
    assert [entry.key for entry in pending_runs(kube, "kube-system")[0].entries] == [entry_key(first)]
    mirror.journal.mark_undone(first, "seen")
    assert mirror.reconcile() == ""
    assert not kube.stored
    assert not mirror.journal.has_replica


def test_an_operation_without_undo_is_not_pending(kube: ConfigMaps, mirror: JournalMirror) -> None:
    mirror.journal.record_intent("a", "cancel-shutdown", "n1", Undo(), 1.0)
    mirror.publish()
    assert not pending_runs(kube, "kube-system")[0].has_pending
    assert mirror.reconcile() == ""
    assert not kube.stored


def test_a_failed_write_aborts_the_run(kube: ConfigMaps, mirror: JournalMirror) -> None:
    kube.broken = Response(403, b'{"message": "configmaps is forbidden"}', {})
    mirror.journal.record_intent("a", "kubelet-stop", "n1", UNDO, 1.0)
    with pytest.raises(Aborted, match="configmaps is forbidden") as caught:
        mirror.publish()
    assert "nodefall rbac" in caught.value.hint


def test_the_journal_records_a_replica_that_could_not_be_deleted(
    kube: ConfigMaps, mirror: JournalMirror, tmp_path: Path
) -> None:
    entry = mirror.journal.record_intent("a", "kubelet-stop", "n1", UNDO, 1.0)
    mirror.publish()
    mirror.journal.mark_undone(entry, "seen")
    kube.broken = KubeUnreachable("timeout", "no answer in time")
    assert (
        mirror.reconcile()
        == "the journal in the cluster (ConfigMap kube-system/nodefall-run-graceful-1): no answer in time"
    )
    mirror.journal.close()
    with Journal(tmp_path) as again:
        assert again.has_replica
        assert not again.pending()


@pytest.mark.parametrize(
    "data", [{}, {"run.json": "{}", "pending.json": "[]"}, {"run.json": "\x1b[2J", "pending.json": "[["}]
)
def test_one_that_cannot_be_read_may_have_pending_undo(kube: ConfigMaps, data: dict[str, str]) -> None:
    kube.stored["x"] = {"metadata": {"name": configmap_name("x")}, "data": data}
    (run,) = pending_runs(kube, "kube-system")
    assert run.has_pending
    assert run.error
    assert run.identity.run == "x"


class Flood(ConfigMaps):
    """So many ConfigMaps of somebody else, a MiB each, besides those that are stored."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.queries = count, list[dict[str, str]]()

    def request(self, method: str, path: str, query: Any = None, *rest: Any, **more: Any) -> Response:
        if method != "GET":
            return super().request(method, path, query, *rest, **more)
        self.queries.append(dict(query))
        if "fieldSelector" in query:
            name = query["fieldSelector"].removeprefix("metadata.name=")
            items, left = [item for key, item in self.stored.items() if key == name], 0
        else:
            begin = int(query.get("continue") or 0)
            end = min(begin + int(query["limit"]), self.count)
            data = {"run.json": "x" * (1 << 20)}
            items = [{"metadata": {"name": f"nodefall-run-{n}"}, "data": data} for n in range(begin, end)]
            left = end if end < self.count else 0
        page = {"metadata": {"continue": str(left or "")}, "items": items}
        return Response(200, json.dumps(page).encode(), {})


def test_a_flood_of_journals_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    """Nevertheless the journal of one run is found."""
    kube = Flood(10_000)
    with pytest.raises(NodefallError, match="have more than 64 MiB"):
        pending_runs(kube, "kube-system")
    assert len(kube.queries) == 2
    identity = RunIdentity("graceful-1", "graceful", 1000.0, "ann@here/1-ab")
    mirror = JournalMirror(kube, "kube-system", identity, Journal(tmp_path), Signer("uid"))
    mirror.journal.record_intent("stop", "kubelet-stop", "n1", UNDO, 1.0)
    mirror.publish()
    found = find_replica(kube, "kube-system", "graceful-1")
    assert found is not None
    assert [entry.step for entry in found.entries] == ["stop"]
    assert find_replica(kube, "kube-system", "graceful-2") is None


def test_journals_come_in_pages() -> None:
    kube = Flood(60)
    assert len(pending_runs(kube, "kube-system")) == 60
    assert [query.get("continue", "") for query in kube.queries] == ["", "50"]


def test_other_config_maps_are_ignored(kube: ConfigMaps) -> None:
    kube.stored["x"] = {"metadata": {"name": "something-else"}}
    assert not pending_runs(kube, "kube-system")


@pytest.mark.parametrize(("run", "experiment"), [("../../pods/x", "e"), ("other", "e"), ("r-1", "../e"), ("r-1", "/e")])
def test_an_identity_of_another_config_map_is_an_error(kube: ConfigMaps, run: str, experiment: str) -> None:
    """Write access to ConfigMaps gives no access to paths of this machine or of the API."""
    data = {"run.json": json.dumps({"run": run, "experiment": experiment, "started": 1.0}), "pending.json": "[]"}
    kube.stored["nodefall-run-r-1"] = {"metadata": {"name": "nodefall-run-r-1"}, "data": data}
    (found,) = pending_runs(kube, "kube-system")
    assert found.has_pending
    assert "it names the run" in found.error
    assert (found.identity.run, found.identity.experiment) == ("r-1", "")


def test_the_commands_of_a_replica_of_0_1_0_are_only_shown(kube: ConfigMaps) -> None:
    """Its key and the fields of an undo step had other names."""
    step = {"command": {"type": "host", "argv": ["true"]}, "patience": 2.5, "sends": 4}
    undo = {"steps": [step], "proof": [{"fact": "planted-timers", "value": []}], "disarm": ""}
    entry = {"id": 1, "step": "cut", "action": "partition", "node": "n1", "undo": undo, "t": 1.0}
    nothing = {**entry, "id": 2, "undo": {"steps": [], "proof": [], "disarm": ""}}
    identity = {"run": "r-1", "experiment": "e", "started": 1.0, "holder": "ann"}
    for key in ("owed.json", "pending.json"):  # words: keep
        data = {"run.json": json.dumps(identity), key: json.dumps([entry, nothing])}
        kube.stored["nodefall-run-r-1"] = {"metadata": {"name": "nodefall-run-r-1"}, "data": data}
        (run,) = pending_runs(kube, "kube-system")
        assert not run.error
        assert run.entries == (ReplicaEntry(1, "cut", "partition", "n1", 1.0, commands=("true",)),)


class Versioned(ConfigMaps):
    """Checks the versions that writes and deletions name, and may lose the answer of one that it has done."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        self.lose_next_answer = False

    def answer(self, method: str, path: str, body: Any) -> Response:
        given = body or {}
        part = given.get("preconditions" if method == "DELETE" else "metadata") or {}
        name = path.rpartition("/")[2]
        stored = self.stored.get(name)
        version = part.get("resourceVersion")
        if stored and method in {"PUT", "DELETE"} and version not in {None, stored["metadata"]["resourceVersion"]}:
            return Response(409, b'{"message": "conflict"}', {})
        if method in {"PUT", "POST"}:
            self.version += 1
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        response = super().answer(method, path, body)
        if self.lose_next_answer and method == "PUT":
            self.lose_next_answer = False
            raise KubeUnreachable("reset", "the answer was lost")
        return response


@pytest.fixture
def versioned(tmp_path: Path) -> tuple[Versioned, JournalMirror]:
    kube = Versioned()
    identity = RunIdentity("graceful-1", "graceful", 1000.0, "ann@here/1-ab")
    return kube, JournalMirror(kube, "kube-system", identity, Journal(tmp_path), Signer("uid"))


def test_a_replica_that_another_process_removed_or_replaced_is_not_written_again(
    versioned: tuple[Versioned, JournalMirror],
) -> None:
    kube, mirror = versioned
    name = configmap_name("graceful-1")
    mirror.journal.record_intent("a", "kubelet-stop", "n1", UNDO, 1.0)
    mirror.publish()
    removed = kube.stored.pop(name)
    with pytest.raises(Aborted, match="cannot write the journal to the cluster"):
        mirror.publish()
    assert not kube.stored
    kube.stored[name] = {**removed, "data": {}, "metadata": {**removed["metadata"], "resourceVersion": "99"}}
    with pytest.raises(Aborted, match="it was changed by another process"):
        mirror.publish()
    assert "it was changed by another process" in mirror.reconcile()
    assert kube.stored[name]["data"] == {}
    assert mirror.published() == frozenset()  # with the lock held, this run's journal is the valid one
    assert mirror.reconcile() == ""


def test_a_write_whose_answer_was_lost_is_known_to_be_of_this_run(versioned: tuple[Versioned, JournalMirror]) -> None:
    kube, mirror = versioned
    first = mirror.journal.record_intent("a", "kubelet-stop", "n1", UNDO, 1.0)
    mirror.publish()
    second = mirror.journal.record_intent("b", "kubelet-stop", "n2", UNDO, 2.0)
    kube.lose_next_answer = True
    with pytest.raises(Aborted, match="the answer was lost"):
        mirror.publish()
    mirror.journal.mark_undone(second, "seen")
    assert mirror.reconcile() == ""
    assert mirror.published() == {("a", "kubelet-stop", "n1", 1.0)}
    mirror.journal.mark_undone(first, "seen")
    kube.lose_next_answer = False
    assert mirror.reconcile() == ""
    assert not kube.stored


def test_the_copy_has_what_others_have_not_undone_yet(
    versioned: tuple[Versioned, JournalMirror], tmp_path: Path
) -> None:
    kube, mirror = versioned
    (tmp_path / "elsewhere").mkdir()
    mirror.journal.record_intent("a", "kubelet-stop", "n1", UNDO, 1.0)
    mirror.journal.record_intent("b", "kubelet-stop", "n2", UNDO, 2.0)
    mirror.publish()
    copy = Journal(tmp_path / "elsewhere")
    identity = RunIdentity("graceful-1", "graceful", 1000.0)
    elsewhere = JournalMirror(kube, "kube-system", identity, copy, Signer("uid"))
    assert elsewhere.still_published() == {("a", "kubelet-stop", "n1", 1.0), ("b", "kubelet-stop", "n2", 2.0)}
    assert elsewhere.published() == frozenset()  # another process wrote it
    kube.stored.clear()
    assert elsewhere.still_published() == frozenset()


def test_an_unreadable_copy_takes_nothing_from_the_journal(versioned: tuple[Versioned, JournalMirror]) -> None:
    kube, mirror = versioned
    mirror.journal.record_intent("a", "kubelet-stop", "n1", UNDO, 1.0)
    mirror.publish()
    kube.stored[configmap_name("graceful-1")]["data"] = {"run.json": "{"}
    assert mirror.still_published() == {("a", "kubelet-stop", "n1", 1.0)}


def test_it_stays_as_it_is_while_it_has_rejected_entries(versioned: tuple[Versioned, JournalMirror]) -> None:
    kube, mirror = versioned
    entry = mirror.journal.record_intent("a", "kubelet-stop", "n1", UNDO, 1.0)
    mirror.publish()
    mirror.journal.mark_undone(entry, "seen")
    stored = dict(kube.stored)
    assert mirror.reconcile([ReplicaEntry(1, "cut", "partition", "n1", 1.0)]) == ""
    assert kube.stored == stored
    assert mirror.journal.has_replica
    assert mirror.reconcile() == ""
    assert not kube.stored
