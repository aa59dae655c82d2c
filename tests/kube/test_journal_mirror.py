"""What a run owes, in the cluster too: written before the deed, gone when nothing is owed, readable from anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.kube.errors import KubeUnreachable
from chaos.kube.journal_mirror import JournalMirror, RunIdentity, configmap_name, pending_runs
from chaos.model.action import FactCheck, Undo
from chaos.model.errors import Aborted
from chaos.model.ports import Response
from chaos.store.journal import Journal
from tests.kit.fakes import FakeKube

OWING = Undo(proof=(FactCheck("node-ready", True),))


class ConfigMaps(FakeKube):
    """Keeps them by name; PUT creates none."""

    def __init__(self) -> None:
        super().__init__({})
        self.kept: dict[str, dict[str, Any]] = {}
        self.broken: Response | KubeUnreachable | None = None

    def answer(self, method: str, path: str, body: Any) -> Response:
        if isinstance(self.broken, KubeUnreachable):
            raise self.broken
        if self.broken:
            return self.broken
        name = path.removeprefix("/api/v1/namespaces/kube-system/configmaps").strip("/")
        if method == "GET":
            return Response(200, json.dumps({"items": list(self.kept.values())}).encode(), {})
        if method != "POST" and name not in self.kept:
            return Response(404, b'{"message": "not found"}', {})
        if method == "DELETE":
            del self.kept[name]
            return Response(200, b"{}", {})
        self.kept[body["metadata"]["name"]] = body
        return Response(200, json.dumps(body).encode(), {})


@pytest.fixture
def kube() -> ConfigMaps:
    return ConfigMaps()


@pytest.fixture
def ledger(kube: ConfigMaps, tmp_path: Path) -> JournalMirror:
    debtor = RunIdentity("graceful-1", "graceful", 1000.0, "ann@here/1-ab")
    return JournalMirror(kube, "kube-system", debtor, Journal(tmp_path))


def test_it_is_there_while_something_is_owed(kube: ConfigMaps, ledger: JournalMirror) -> None:
    first = ledger.journal.record_intent("a", "kubelet-stop", "n1", OWING, 1.0)
    ledger.publish()
    second = ledger.journal.record_intent("b", "kubelet-stop", "n2", OWING, 2.0)
    ledger.publish()
    (debt,) = pending_runs(kube, "kube-system")
    assert (debt.identity, debt.has_pending) == (ledger.identity, True)
    assert debt.pending == (second, first)
    ledger.journal.mark_undone(second, "seen")
    assert ledger.reconcile() == ""
    assert pending_runs(kube, "kube-system")[0].pending == (first,)
    ledger.journal.mark_undone(first, "seen")
    assert ledger.reconcile() == ""
    assert not kube.kept
    assert not ledger.journal.has_replica


def test_what_needs_no_taking_back_is_no_debt(kube: ConfigMaps, ledger: JournalMirror) -> None:
    ledger.journal.record_intent("a", "cancel-shutdown", "n1", Undo(), 1.0)
    ledger.publish()
    assert not pending_runs(kube, "kube-system")[0].has_pending
    assert ledger.reconcile() == ""
    assert not kube.kept


def test_nothing_is_done_that_could_not_be_written(kube: ConfigMaps, ledger: JournalMirror) -> None:
    kube.broken = Response(403, b'{"message": "configmaps is forbidden"}', {})
    ledger.journal.record_intent("a", "kubelet-stop", "n1", OWING, 1.0)
    with pytest.raises(Aborted, match="configmaps is forbidden") as caught:
        ledger.publish()
    assert "nodefall rbac" in caught.value.hint


def test_what_could_not_be_settled_is_known_to_the_journal(
    kube: ConfigMaps, ledger: JournalMirror, tmp_path: Path
) -> None:
    owed = ledger.journal.record_intent("a", "kubelet-stop", "n1", OWING, 1.0)
    ledger.publish()
    ledger.journal.mark_undone(owed, "seen")
    kube.broken = KubeUnreachable("timeout", "no answer in time")
    assert (
        ledger.reconcile()
        == "the journal in the cluster (ConfigMap kube-system/nodefall-run-graceful-1): no answer in time"
    )
    ledger.journal.close()
    with Journal(tmp_path) as again:
        assert again.has_replica
        assert not again.pending()


@pytest.mark.parametrize(
    "data", [{}, {"run.json": "{}", "owed.json": "[]"}, {"run.json": "\x1b[2J", "owed.json": "[["}]
)
def test_one_that_cannot_be_read_may_owe_anything(kube: ConfigMaps, data: dict[str, str]) -> None:
    kube.kept["x"] = {"metadata": {"name": configmap_name("x")}, "data": data}
    (debt,) = pending_runs(kube, "kube-system")
    assert debt.has_pending
    assert debt.error
    assert debt.identity.run == "x"


def test_other_config_maps_are_none_of_our_business(kube: ConfigMaps) -> None:
    kube.kept["x"] = {"metadata": {"name": "something-else"}}
    assert not pending_runs(kube, "kube-system")


@pytest.mark.parametrize(("run", "experiment"), [("../../pods/x", "e"), ("other", "e"), ("r-1", "../e"), ("r-1", "/e")])
def test_a_debtor_that_is_not_its_config_maps_is_damage(kube: ConfigMaps, run: str, experiment: str) -> None:
    """Whoever may write there names no path on this machine, nor in the API."""
    data = {"run.json": json.dumps({"run": run, "experiment": experiment, "started": 1.0}), "owed.json": "[]"}
    kube.kept["nodefall-run-r-1"] = {"metadata": {"name": "nodefall-run-r-1"}, "data": data}
    (debt,) = pending_runs(kube, "kube-system")
    assert debt.has_pending
    assert "it names the run" in debt.error
    assert (debt.identity.run, debt.identity.experiment) == ("r-1", "")
