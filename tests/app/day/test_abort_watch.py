"""Abort conditions of a game day between its runs, on a lab whose nodes fail without a step of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from chaos.app.day import stop as abort_watch_module
from chaos.app.day.stop import AbortWatch, abort_watch, violated_in_run
from chaos.app.wiring.connect import connect_cluster
from chaos.core.experiment import Expectation
from chaos.core.inventory import Inventory
from chaos.core.recording import RecordingEntry
from chaos.core.result import RunResult
from chaos.core.verdict import Status, Verdict
from chaos.engine.connection import ClusterConnection
from chaos.engine.registry import load_registry
from tests.kit.fakes import FakeClock

LAB = {
    "apiVersion": "nodefall.dev/v1alpha1",
    "kind": "Inventory",
    "metadata": {"name": "lab"},
    "lab": {"workers": 3, "seed": 3, "speed": 200},
}


def condition(**declared: object) -> Expectation:
    return Expectation.model_validate(declared, by_alias=True)


NOT_READY = condition(**{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "always": True})
PLAIN = condition(**{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}})
ELSEWHERE = condition(**{"assert": "workload-available", "name": "shop", "with": {"namespace": "workload"}})


@contextmanager
def lab() -> Iterator[ClusterConnection]:
    inventory = Inventory.model_validate(LAB, by_alias=True)
    with connect_cluster(inventory, seed=3) as connection, connection.clock.participant():
        yield connection


def until(connection: ClusterConnection, holds: Callable[[], object], seconds: int) -> bool:
    for _ in range(seconds):
        if holds():
            return True
        assert connection.clock.sleep(1.0)
    return False


@pytest.mark.lab
def test_nodes_that_fail_between_two_runs_are_noticed() -> None:
    notes: list[str] = []
    with (
        lab() as connection,
        abort_watch([ELSEWHERE, PLAIN], connection, load_registry(), notes.append) as violated,
    ):
        assert not until(connection, violated, 30), "all nodes are Ready"
        first, second = sorted(name for name in connection.inventory.hosts if "worker" in name)[:2]
        _power_off(connection, first)
        assert not until(connection, violated, 90), "one may be"
        _power_off(connection, second)
        assert until(connection, violated, 90)
        assert violated().startswith("abort condition nodes-ready: "), violated()
    assert len(notes) == 1
    assert notes[0].startswith("abort condition shop cannot be judged now: the namespace of the workload is unknown")


def _power_off(connection: ClusterConnection, node: str) -> None:
    power = connection.hosts.power(node)
    assert power
    power.off()


@pytest.mark.lab
def test_what_is_wrong_from_the_begin_on_counts() -> None:
    with lab() as connection:
        nodes = condition(**{"assert": "nodes-ready", "with": {"not-ready-at-most": 0}})
        _power_off(connection, next(name for name in sorted(connection.inventory.hosts) if "worker" in name))
        connection.clock.sleep(90.0)
        with abort_watch([nodes], connection, load_registry(), lambda _: None) as violated:
            assert until(connection, violated, 30)


def test_without_conditions_nothing_is_watched() -> None:
    with abort_watch([], cast("ClusterConnection", None), load_registry(), lambda _: None) as violated:
        assert violated() == ""


def test_a_condition_that_cannot_be_judged_is_noted_once() -> None:
    """Its reason may have a time in it, and is another one each second."""
    notes: list[str] = []
    watch = AbortWatch([NOT_READY], cast("ClusterConnection", None), load_registry(), notes.append)
    for seconds in range(3):
        because = f"nodes were not observed for {seconds} s"
        watch._note_unknown(Verdict("nodes-ready", "nodes-ready", Status.INCONCLUSIVE, because))
    watch._note_unknown(Verdict("shop", "workload-available", Status.INCONCLUSIVE, "no workload"))
    assert notes == [
        "abort condition nodes-ready cannot be judged now: nodes were not observed for 0 s",
        "abort condition shop cannot be judged now: no workload",
    ]


class Nodes:
    """An observer that sees ``count`` nodes at once, and more by :meth:`see`."""

    def __init__(self, count: int) -> None:
        self.count, self.starts = count, 0

    def start(self, emit: Callable[[RecordingEntry], object]) -> None:
        self.starts += 1
        self.emit = emit
        self.see(self.count)

    def see(self, count: int) -> None:
        for number in range(count):
            node = {"metadata": {"name": f"n{number}", "uid": f"n{number}"}, "status": {"conditions": []}}
            self.emit(RecordingEntry(1000.0, "nodes", "ADDED", msgspec.Raw(msgspec.json.encode(node))))

    def has_synced(self) -> bool:
        return True

    def stop(self) -> None: ...


def test_the_watch_begins_again_for_what_was_added_not_for_a_large_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first lists alone may be longer than what may be added: they do not count."""
    nodes = Nodes(20)
    made = SimpleNamespace(watches=[nodes], currency=SimpleNamespace(prove_at=lambda _: None))
    monkeypatch.setattr(abort_watch_module, "_MAX_ENTRIES", 10)
    monkeypatch.setattr(abort_watch_module, "ClusterObservers", lambda *_: made)
    connection = cast("ClusterConnection", SimpleNamespace(kube=None, clock=FakeClock()))
    with abort_watch([NOT_READY], connection, load_registry(), lambda _: None) as violated:
        assert violated().startswith("abort condition nodes-ready: ")
        assert nodes.starts == 1
        nodes.see(11)
        assert violated() == ""
        assert nodes.starts == 2
        assert violated().startswith("abort condition nodes-ready: ")


def test_conditions_of_the_day_differ_from_those_of_the_experiment() -> None:
    def result(*verdicts: Verdict) -> RunResult:
        empty = msgspec.convert(_EMPTY, RunResult)
        return msgspec.structs.replace(empty, abort=verdicts)

    own = Verdict("own", "nodes-ready", Status.VIOLATED, "two are not")
    of_day = Verdict("nodes-ready", "nodes-ready", Status.VIOLATED, "two are not")
    held = Verdict("nodes-ready", "nodes-ready", Status.PENDING, "all are")
    assert violated_in_run([NOT_READY], result(own, of_day)) == "abort condition nodes-ready: two are not"
    assert violated_in_run([NOT_READY], result(own, held)) == ""


_EMPTY = {
    "version": 1,
    "run": "r",
    "experiment": "e",
    "title": "",
    "status": "held",
    "exit_code": 0,
    "headline": "",
    "simulated": True,
    "kubernetes": "",
    "cluster_uid": "",
    "started": 0.0,
    "ended": 1.0,
    "targets": {},
    "steps": [],
    "steady_state": [],
    "hypothesis": [],
}
