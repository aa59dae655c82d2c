"""What a run owes, in the cluster too: written before the deed, gone when nothing is owed, readable from anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeKube

from chaos.engine.ledger import Debtor, Ledger, debts, name_of
from chaos.model.action import Check, Undo
from chaos.model.errors import Aborted
from chaos.model.ports import Response
from chaos.observers.unreachable import KubeUnreachable
from chaos.store.journal import Journal

OWING = Undo(proof=(Check("node-ready", True),))


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
def ledger(kube: ConfigMaps, tmp_path: Path) -> Ledger:
    debtor = Debtor("graceful-1", "graceful", 1000.0, "ann@here/1-ab")
    return Ledger(kube, "kube-system", debtor, Journal(tmp_path))


def test_it_is_there_while_something_is_owed(kube: ConfigMaps, ledger: Ledger) -> None:
    first = ledger.journal.intend("a", "kubelet-stop", "n1", OWING, 1.0)
    ledger.publish()
    second = ledger.journal.intend("b", "kubelet-stop", "n2", OWING, 2.0)
    ledger.publish()
    (debt,) = debts(kube, "kube-system")
    assert (debt.debtor, debt.open) == (ledger.debtor, True)
    assert debt.owed == (second, first)
    ledger.journal.strike(second, "seen")
    assert ledger.settle() == ""
    assert debts(kube, "kube-system")[0].owed == (first,)
    ledger.journal.strike(first, "seen")
    assert ledger.settle() == ""
    assert not kube.kept
    assert not ledger.journal.mirrored


def test_what_needs_no_taking_back_is_no_debt(kube: ConfigMaps, ledger: Ledger) -> None:
    ledger.journal.intend("a", "cancel-shutdown", "n1", Undo(), 1.0)
    ledger.publish()
    assert not debts(kube, "kube-system")[0].open
    assert ledger.settle() == ""
    assert not kube.kept


def test_nothing_is_done_that_could_not_be_written(kube: ConfigMaps, ledger: Ledger) -> None:
    kube.broken = Response(403, b'{"message": "configmaps is forbidden"}', {})
    ledger.journal.intend("a", "kubelet-stop", "n1", OWING, 1.0)
    with pytest.raises(Aborted, match="configmaps is forbidden") as caught:
        ledger.publish()
    assert "nodefall rbac" in caught.value.hint


def test_what_could_not_be_settled_is_known_to_the_journal(kube: ConfigMaps, ledger: Ledger, tmp_path: Path) -> None:
    owed = ledger.journal.intend("a", "kubelet-stop", "n1", OWING, 1.0)
    ledger.publish()
    ledger.journal.strike(owed, "seen")
    kube.broken = KubeUnreachable("timeout", "no answer in time")
    assert (
        ledger.settle()
        == "the journal in the cluster (ConfigMap kube-system/nodefall-run-graceful-1): no answer in time"
    )
    ledger.journal.close()
    with Journal(tmp_path) as again:
        assert again.mirrored
        assert not again.owed()


@pytest.mark.parametrize(
    "data", [{}, {"run.json": "{}", "owed.json": "[]"}, {"run.json": "\x1b[2J", "owed.json": "[["}]
)
def test_one_that_cannot_be_read_may_owe_anything(kube: ConfigMaps, data: dict[str, str]) -> None:
    kube.kept["x"] = {"metadata": {"name": name_of("x")}, "data": data}
    (debt,) = debts(kube, "kube-system")
    assert debt.open
    assert debt.damaged
    assert debt.debtor.run == "x"


def test_other_config_maps_are_none_of_our_business(kube: ConfigMaps) -> None:
    kube.kept["x"] = {"metadata": {"name": "something-else"}}
    assert not debts(kube, "kube-system")


@pytest.mark.parametrize(("run", "experiment"), [("../../pods/x", "e"), ("other", "e"), ("r-1", "../e"), ("r-1", "/e")])
def test_a_debtor_that_is_not_its_config_maps_is_damage(kube: ConfigMaps, run: str, experiment: str) -> None:
    """Whoever may write there names no path on this machine, nor in the API."""
    data = {"run.json": json.dumps({"run": run, "experiment": experiment, "started": 1.0}), "owed.json": "[]"}
    kube.kept["nodefall-run-r-1"] = {"metadata": {"name": "nodefall-run-r-1"}, "data": data}
    (debt,) = debts(kube, "kube-system")
    assert debt.open
    assert "it names the run" in debt.damaged
    assert (debt.debtor.run, debt.debtor.experiment) == ("r-1", "")
