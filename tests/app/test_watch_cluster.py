"""What ``watch -i`` says about the cluster's lock, and which run its Stop reaches."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.app import watch as watch_cluster
from chaos.app.watch import NO_RUN, ClusterFollower
from chaos.app.wiring import lock
from chaos.cluster.lease import ABORT
from chaos.core.errors import NodefallError
from chaos.core.labels import RUN_LABEL
from chaos.core.ports import Response
from chaos.engine.progress import Unwatched
from tests.kit.fakes import FakeKube

NOW = 1795417200.0  # 2026-11-23T07:00:00Z


class Cluster(FakeKube):
    """A cluster whose lock ``run`` holds; ``aborted``: whom it was asked to stop."""

    def __init__(self, run: str) -> None:
        super().__init__({})
        self.run, self.status = run, 200
        self.aborted: list[str] = []

    def answer(self, method: str, path: str, body: Any) -> Response:
        if method == "PATCH" and self.status == 200:
            assert ABORT in body["metadata"]["annotations"]
            self.aborted.append(self.run)
        spec = {"holderIdentity": "ann@a/7", "renewTime": "2026-11-23T07:00:00.000000Z", "leaseDurationSeconds": 30}
        metadata = {"name": "lock", "resourceVersion": "1", "annotations": {RUN_LABEL: self.run}}
        lease = {"metadata": metadata, "spec": spec if self.run else {}}
        return Response(200 if method == "GET" else self.status, json.dumps(lease).encode(), {})


class Page(Unwatched):
    """The Stop of a page, and what was said on it."""

    def __init__(self) -> None:
        self.stop: Any = None
        self.said: list[tuple[str, str]] = []

    def begin(self, targets: Any, stop: Any) -> None:
        self.stop = stop

    def describe(self, phase: str, note: str) -> None:
        self.said.append((phase, note))


@pytest.fixture
def page() -> Page:
    return Page()


def follower(cluster: Cluster, page: Page, monkeypatch: pytest.MonkeyPatch) -> ClusterFollower:
    monkeypatch.setattr(watch_cluster, "lock_namespace", lambda _: "nodefall")
    monkeypatch.setattr(lock, "SystemClock", lambda: SimpleNamespace(now=lambda: NOW, close=lambda: None))
    return ClusterFollower(SimpleNamespace(kube=cluster, clock=None), page, page.describe)  # type: ignore[arg-type]


def test_stop_reaches_the_run_that_was_shown(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("r-1")
    shown = follower(cluster, page, monkeypatch)
    shown._read_lock()
    page.stop()
    shown._read_lock()
    shown._read_lock()
    assert cluster.aborted == ["r-1"]


def test_stop_does_not_reach_the_run_that_follows(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("r-1")
    shown = follower(cluster, page, monkeypatch)
    shown._read_lock()
    page.stop()
    cluster.run = "r-2"
    shown._read_lock()
    shown._read_lock()
    assert cluster.aborted == []
    assert [phase for phase, _ in page.said] == ["run r-1 of ann@a/7 is active", "run r-2 of ann@a/7 is active"]
    page.stop()
    shown._read_lock()
    assert cluster.aborted == ["r-2"]


def test_a_stop_that_fails_says_so_and_is_offered_again(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("r-1")
    shown = follower(cluster, page, monkeypatch)
    shown._read_lock()
    first, cluster.status = page.stop, 500
    first()
    shown._read_lock()
    shown._read_lock()
    assert page.said[-1][0] == "run r-1 of ann@a/7 is active"
    assert page.said[-1][1].startswith("the run was not stopped: the cluster's lock cannot be annotated: 500")
    assert page.stop is not first, "it is offered again"
    cluster.status = 200
    page.stop()
    shown._read_lock()
    assert cluster.aborted == ["r-1"]


def test_a_lock_that_is_read_again_is_described_again(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("")
    shown = follower(cluster, page, monkeypatch)
    times, reads = iter(range(3)), shown._read_lock

    def read() -> None:
        if next(times, 3) == 1:
            raise NodefallError("connection refused")
        reads()

    observers = SimpleNamespace(watches=(), currency=None)
    recorder = SimpleNamespace(timeline=lambda: None)
    monkeypatch.setattr(watch_cluster, "ClusterObservers", lambda *_: observers)
    monkeypatch.setattr(watch_cluster, "Recorder", lambda *_args, **_named: recorder)
    monkeypatch.setattr(ClusterFollower, "_read_lock", lambda _: read())
    ended = iter([False, False, True])
    shown.ended = SimpleNamespace(wait=lambda _: next(ended))  # type: ignore[assignment]
    shown.follow()
    assert page.said == [(NO_RUN, ""), ("the cluster's lock cannot be read", "connection refused"), (NO_RUN, "")]
