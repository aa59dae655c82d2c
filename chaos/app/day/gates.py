"""Gates before a run of a day: what they ask, and what follows, each as the document has it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from chaos.app.day.session import DaySession
from chaos.app.day.waits import Wait, wait_until
from chaos.app.doctor import DoctorRequest, diagnose
from chaos.app.undo.elsewhere import learn_from_cluster
from chaos.app.undo.pending import read_sources
from chaos.app.wiring.lock import held_lock
from chaos.cluster.observers.http_client import http_request
from chaos.cluster.observers.prometheus import check_freshness, make_client
from chaos.cluster.observers.promql import PrometheusClient
from chaos.core.duration import format_duration, parse_duration
from chaos.core.errors import Aborted, NodefallError
from chaos.core.metrics import AlertingRule
from chaos.core.ports import Clock, Response
from chaos.core.prometheus import Prometheus
from chaos.core.recording import Series
from chaos.core.threads import ContextThread
from chaos.engine.connection import ClusterConnection, lock_namespace
from chaos.engine.load import LoadedExperiment
from chaos.engine.preflight.check import Severity
from chaos.engine.preflight.findings import describe
from chaos.gameday.document import ApprovalGate, Gate
from chaos.gameday.gate_check import GateResult, check_gates
from chaos.gameday.state import Approval, DayRun
from chaos.gameday.transitions import approve, pass_gates, skip, skip_rest
from chaos.machines.local import resolve_secret

T = TypeVar("T")
_MAX_BYTES = 10_000_000  # of one answer of Prometheus
_POLL = 0.05  # wall seconds
_TICK = 0.1  # seconds of cluster time that may pass in one poll
_log = logging.getLogger(__name__)
_PERIOD = 10.0  # seconds


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
            raise NodefallError(f"{name}: no response yet to the last check")
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
        check_freshness(client, settings, [promql])
        return client.query(promql)

    def alerting_rules(self) -> Sequence[AlertingRule]:
        client, settings = self._prometheus()
        check_freshness(client, settings)
        return client.alerting_rules()

    def get(self, url: str, seconds: float, *, with_body: bool) -> Response:
        return http_request("GET", url, seconds=seconds, with_body=with_body)

    def refusals(self) -> Sequence[str]:
        request = DoctorRequest(self.connection, self.reports)
        report = diagnose(self.experiments, request)
        return [describe(finding) for finding in report.findings if finding.severity is Severity.REFUSAL]

    def lock_holder(self) -> str:
        record = held_lock(self.connection.kube, lock_namespace(self.connection))
        return record.holder if record and record.holder != self.own_holder else ""

    def pending_undo(self) -> Sequence[str]:
        learn_from_cluster(self.connection, self.reports, _log.info)
        return [str(finding) for finding in read_sources(self.connection, self.reports).findings()]

    def _prometheus(self) -> tuple[PrometheusClient, Prometheus]:
        settings = self.connection.inventory.prometheus
        if settings is None:
            raise NodefallError("no prometheus in the inventory", hint="add prometheus: {url: ...} to the inventory")
        return make_client(settings, resolve_secret, max_bytes=_MAX_BYTES), settings


GateChecker = Callable[[DaySession, Sequence[Gate], DayRun], Sequence[GateResult]]
"""The answers of gates before a run, in their order. Never raises for a gate that cannot be evaluated."""


@dataclass
class _Gates:
    """The gates of one run. ``decision``: what the first gate that fails for good asks for, "" for none."""

    session: DaySession
    run: DayRun
    gates: Sequence[Gate]
    checker: GateChecker
    begun: float
    decision: str = ""
    reason: str = ""

    def check(self) -> str:
        """Why the run must wait; "" if all gates hold, or one has decided otherwise."""
        self.session.refresh(patience=0.0)  # approvals of others
        waiting = []
        now = self.session.now()
        for gate, answer in zip(self.gates, self.checker(self.session, self.gates, self.run), strict=True):
            if answer.holds is True:
                continue
            reason = f"gate {answer.gate}: {answer.reason}"
            is_over = gate.on_failure == "wait" and now >= self.deadline(gate)
            if gate.on_failure != "wait" or is_over:
                self.decision = "stop" if is_over else gate.on_failure
                self.reason = reason
                return ""
            waiting.append(reason)
        return "; ".join(waiting)

    def deadline(self, gate: Gate) -> float:
        """When a gate that the day waits for has failed."""
        return self.begun + parse_duration(gate.wait or "0s")

    @property
    def first_deadline(self) -> float | None:
        return min((self.deadline(gate) for gate in self.gates if gate.on_failure == "wait"), default=None)


def await_gates(session: DaySession, run: DayRun, checker: GateChecker) -> bool:
    """Wait until all gates hold; one that does not skips the run, or the rest of the day. Whether all hold."""
    entry = session.entries[run.key.entry]
    of_day = session.request.day.document.spec.gates
    gates = [*of_day, *entry.entry.gates]
    if not gates:
        return True
    _ask_approvals(session, of_day, "")
    _ask_approvals(session, entry.entry.gates, run.key.entry)
    watched = _Gates(session, run, gates, checker, session.now())
    wait_until(session, Wait(f"the gates of {run.key}", watched.check, _PERIOD, expected=watched.first_deadline))
    if watched.decision == "skip":
        session.note(f"skipping {run.key}: {watched.reason}")
        session.update(lambda state: skip(state, run.key, watched.reason, session.epoch, session.now()))
    elif watched.decision == "stop":
        session.note(f"stopping the day: {watched.reason}")
        session.update(lambda state: skip_rest(state, watched.reason, session.epoch, session.now()))
    else:
        session.update(partial(pass_gates, key=run.key, epoch=session.epoch, now=session.now()))
    return not watched.decision


def _ask_approvals(session: DaySession, gates: Sequence[Gate], entry: str) -> None:
    """Ask on the terminal for the approvals that are missing."""
    plan_hash = session.state.plan_hash
    for gate in gates:
        if not isinstance(gate, ApprovalGate) or session.state.is_approved(gate.by, entry):
            continue
        what = f"entry {entry}" if entry else f"day {session.state.day}"
        person = session.request.ask_approval(gate.by, f"{what} of {session.state.gameday}", plan_hash)
        if person:
            approval = Approval(person, session.now(), plan_hash, entry, session.request.by)
            session.update(partial(approve, approval=approval))


class GateEvaluator:
    """Evaluates gates; what has not answered in time is not asked again before it ends. A GateChecker."""

    def __init__(self) -> None:
        self._deadlines: Deadlines | None = None

    def __call__(self, session: DaySession, gates: Sequence[Gate], run: DayRun) -> list[GateResult]:
        """The answers of ``gates`` before ``run``. Raises DayHalted and Interrupted."""
        deadlines = self._deadlines = self._deadlines or Deadlines(session.connection.clock, session.stop.check)
        entry = run.key.entry
        sources = GateSources(
            connection=session.connection,
            reports=session.request.reports,
            experiments=[session.entries[entry].loaded],
            plan_hash=session.state.plan_hash,
            is_approved=lambda persons: session.state.is_approved(persons, entry),
            deadlines=deadlines,
        )
        return check_gates(gates, sources)
