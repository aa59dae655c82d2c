"""What the gates of a game day ask: Prometheus, URLs, doctor, the lock and pending undo of the cluster, approvals."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from chaos.app.cluster_lock import lock_namespace
from chaos.app.connect import ClusterConnection
from chaos.app.doctor import DoctorRequest, diagnose
from chaos.app.inventory_secrets import resolve_secret
from chaos.app.load import LoadedExperiment
from chaos.app.pending_undo import read_sources
from chaos.cluster.lease import read_lock
from chaos.cluster.observers.http_client import http_request
from chaos.cluster.observers.prometheus import check_freshness, make_client
from chaos.cluster.observers.promql import PrometheusClient
from chaos.core.clock import SystemClock
from chaos.core.duration import format_duration, parse_duration
from chaos.core.errors import Aborted, NodefallError
from chaos.core.inventory import Prometheus
from chaos.core.metrics import AlertingRule
from chaos.core.ports import Clock, Response
from chaos.core.recording import Series
from chaos.core.registry import PluginRegistry
from chaos.core.threads import ContextThread
from chaos.engine.preflight.check import Severity
from chaos.engine.preflight.findings import describe

T = TypeVar("T")
_MAX_BYTES = 10_000_000  # of one answer of Prometheus
_POLL = 0.05  # wall seconds
_TICK = 0.1  # seconds of cluster time that may pass in one poll
_log = logging.getLogger(__name__)


@dataclass
class Deadlines:
    """Bounds what asks others, in wall time. ``on_wait`` is called while waiting, and may raise to end the wait.

    What has not ended by its deadline is left alone in its thread; the same is not asked again before that ends.
    """

    clock: Clock
    on_wait: Callable[[], object] = lambda: None
    _running: dict[str, threading.Thread] = field(default_factory=dict)

    def within(self, seconds: float, name: str, ask: Callable[[], T]) -> T:
        """What ``ask`` returns or raises. Raises NodefallError after ``seconds``."""
        former = self._running.get(name)
        if former and former.is_alive():
            raise NodefallError(f"{name}: no answer yet to the last time it was asked")
        done = threading.Event()
        outcome = _Outcome()
        self._running[name] = thread = ContextThread(partial(outcome.run, ask, done), "gate")
        thread.start()
        deadline = time.monotonic() + seconds
        while not done.wait(_POLL):
            self.on_wait()
            if time.monotonic() > deadline:
                raise NodefallError(f"{name}: no answer within {format_duration(seconds)}")
            self.clock.sleep(_TICK)  # what is asked may itself wait, and a lab's time stands still unless this sleeps
        return outcome.result()  # type: ignore[no-any-return]


@dataclass
class _Outcome:
    """What a thread has returned or raised."""

    value: Any = None
    error: Exception | None = None

    def run(self, ask: Callable[[], object], done: threading.Event) -> None:
        try:
            self.value = ask()
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            self.error = error
        done.set()

    def result(self) -> Any:
        if isinstance(self.error, Aborted):  # of what was asked: only ``on_wait`` stops the day
            raise NodefallError(self.error.message, hint=self.error.hint) from self.error
        if isinstance(self.error, NodefallError):
            raise self.error
        if self.error:  # an unforeseen answer leaves the gate unknown; it must not end the day
            _log.error("a gate failed", exc_info=self.error)
            raise NodefallError(f"unexpected {type(self.error).__name__}, see the log") from self.error
        return self.value


@dataclass(frozen=True, slots=True)
class GateSources:
    """The context of gates (``GateContext``) on one cluster.

    ``experiments``: those that preflight must not refuse, with unique names. ``is_approved``: by the day's state.
    ``own_holder``: a holder of the cluster's lock that is this day itself, "" if it holds none.
    """

    connection: ClusterConnection
    registry: PluginRegistry
    reports: Path
    experiments: Sequence[LoadedExperiment]
    plan_hash: str
    is_approved: Callable[[Sequence[str]], bool]
    deadlines: Deadlines
    own_holder: str = ""

    def within(self, seconds: float, name: str, ask: Callable[[], T]) -> T:
        return self.deadlines.within(seconds, name, ask)

    def query(self, promql: str) -> Sequence[Series]:
        client, settings = self._prometheus()
        check_freshness(client, parse_duration(settings.stale_after))
        return client.query(promql)

    def alerting_rules(self) -> Sequence[AlertingRule]:
        client, settings = self._prometheus()
        check_freshness(client, parse_duration(settings.stale_after))
        return client.alerting_rules()

    def get(self, url: str, seconds: float, *, with_body: bool) -> Response:
        return http_request("GET", url, seconds=seconds, with_body=with_body)

    def refusals(self) -> Sequence[str]:
        request = DoctorRequest(self.connection, self.registry, self.reports)
        report = diagnose(self.experiments, request)
        return [describe(finding) for finding in report.findings if finding.severity is Severity.REFUSAL]

    def lock_holder(self) -> str:
        record = read_lock(self.connection.kube, lock_namespace(self.connection))
        with closing(SystemClock()) as clock:
            is_held = record and record.holder and record.is_recent(clock.now())
        return record.holder if record and is_held and record.holder != self.own_holder else ""

    def pending_undo(self) -> Sequence[str]:
        return [str(finding) for finding in read_sources(self.connection, self.reports).findings()]

    def _prometheus(self) -> tuple[PrometheusClient, Prometheus]:
        settings = self.connection.inventory.prometheus
        if settings is None:
            raise NodefallError("no prometheus in the inventory", hint="add prometheus: {url: ...} to the inventory")
        return make_client(settings, resolve_secret, max_bytes=_MAX_BYTES), settings
