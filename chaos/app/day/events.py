"""Events of a day for its receivers: its start and end, those of its runs, and a halt."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from chaos.app.day.session import DaySession
from chaos.app.run.results import Run
from chaos.core.clock import SystemClock
from chaos.core.duration import parse_duration
from chaos.core.errors import NodefallError
from chaos.core.field_types import Secret
from chaos.core.metrics import Metric
from chaos.core.redaction import register_secret
from chaos.gameday.document import (
    AlertmanagerReceiver,
    ChatReceiver,
    GrafanaReceiver,
    MetricsReceiver,
    Receiver,
    WebhookReceiver,
)
from chaos.gameday.estimates import experiment_duration
from chaos.gameday.events import DayEvent, EventKind, NoNotifier, Notifier, Undelivered
from chaos.gameday.notify.delivery import Delivery, QueueNotifier, Requester, Subscription
from chaos.gameday.notify.receivers import Alertmanager, Chat, Grafana, Pushgateway, TextfileCollector, Webhook
from chaos.gameday.state import DayRun, DayState, Halt, RunKey, RunStatus, exit_code, verdict_of
from chaos.gameday.transitions import record_undelivered
from chaos.machines.local import resolve_secret
from chaos.reports.run.openmetrics import entry_metrics, run_metrics

_STORE_PATIENCE = 5.0  # wall seconds


@contextmanager
def notifying(session: DaySession) -> Iterator[None]:
    """Send events for the block; what could not be delivered becomes a part of the day's state."""
    day = session.request.day
    notifier: Notifier = NoNotifier()
    try:
        with notifier_of(day.document.spec.notify, day.path.parent, session.request.display.note) as notifier:
            session.notifier = notifier
            yield
    finally:
        session.notifier = NoNotifier()
        _store_undelivered(session, notifier.undelivered)


def _store_undelivered(session: DaySession, undelivered: Sequence[Undelivered]) -> None:
    if not undelivered:
        return
    change = partial(record_undelivered, undelivered=undelivered, epoch=session.epoch)
    try:
        session.update(change, _STORE_PATIENCE)
    except NodefallError as error:
        session.note(f"cannot store the undelivered notifications: {error.message}")


def send_begin(session: DaySession) -> None:
    """The day begins, or continues."""
    reason = "it goes on" if session.state.has_begun else ""
    _send(session, EventKind.DAY_BEGINS, until=_latest_end(session), reason=reason)


def send_entry_begin(session: DaySession, run: DayRun) -> None:
    """A run of the day begins."""
    _send(session, EventKind.ENTRY_BEGINS, **_fields(session, run))


def send_entry_end(session: DaySession, run: DayRun, done: Run | None, pending: int = 0) -> None:
    """A run of the day has ended; None for one without a result. ``pending``: its undo operations that are pending."""
    report = {"report": _report_url(session, done.report)} if done else {}
    metrics = run_metrics(done.result, done.timeline) if done else _metrics_without_result(session, run, pending)
    verdict, reason = run.verdict or str(run.status), run.reason
    fields = {**_fields(session, run), **report}
    _send(session, EventKind.ENTRY_ENDS, **fields, verdict=verdict, reason=reason, metrics=metrics)


def send_skips(session: DaySession, was_open: Collection[RunKey]) -> None:
    """Runs that were open have been skipped: no metric of a former day may look like one of this day."""
    skipped = [run for run in session.state.runs if run.status is RunStatus.SKIPPED and run.key in was_open]
    for run in {run.key.entry: run for run in skipped}.values():  # the last one of an entry counts
        metrics = _metrics_without_result(session, run, 0)
        fields = _fields(session, run)
        _send(session, EventKind.ENTRY_SKIPPED, **fields, verdict="skipped", reason=run.reason, metrics=metrics)


def _metrics_without_result(session: DaySession, run: DayRun, pending: int) -> tuple[Metric, ...]:
    now = session.now()
    return entry_metrics(run.verdict or str(run.status), now if run.begun is None else run.begun, now, pending)


def _report_url(session: DaySession, report: Path) -> str:
    """Of a report in the reports of the day; "" without a base: a path means nothing to who reads a message."""
    base, reports = session.request.report_url, session.request.reports.absolute()
    if not base or not report.absolute().is_relative_to(reports):
        return ""
    return f"{base.rstrip('/')}/{quote(report.absolute().relative_to(reports).as_posix())}"


def send_halt(session: DaySession, halt: Halt) -> None:
    """The day is halted."""
    _send(session, EventKind.HALTED, by=halt.by, reason=halt.reason)


def send_end(session: DaySession) -> None:
    """The day is finished."""
    _send(session, EventKind.DAY_ENDS, verdict=verdict_of(exit_code(session.state)))


def _send(session: DaySession, kind: EventKind, **fields: Any) -> None:
    spec, state = session.request.day.document.spec, session.state
    session.notifier.send(
        DayEvent(
            kind=kind,
            gameday=state.gameday,
            day=state.day,
            at=session.now(),
            title=spec.title,
            owner=spec.owner,
            cluster=session.request.cluster or session.connection.inventory.metadata.name,
            counts=_counts(state),
            **fields,
        )
    )


def _fields(session: DaySession, run: DayRun) -> dict[str, Any]:
    key = run.key
    experiment = session.entries[key.entry].loaded.experiment.metadata.name
    return {
        "entry": key.entry,
        "repetition": key.repetition,
        "run": run.run,
        "experiment": experiment,
        "begun": run.begun,
    }


def _counts(state: DayState) -> dict[str, int]:
    return dict(Counter(run.verdict or str(run.status) for run in state.runs))


def _latest_end(session: DaySession) -> float | None:
    """When all runs are over at the latest; None if the day may have to wait for its window."""
    if not session.calendar.always_open:
        return None
    default, seconds = session.request.day.document.spec.pause, 0.0
    for run in session.state.runs:
        entry = session.entries[run.key.entry]
        pause = entry.entry.pause or default
        if run.is_open:
            seconds += experiment_duration(entry.loaded.experiment).at_most
            seconds += parse_duration(pause.at_least) + (parse_duration(pause.recovery) if pause.recovery else 0.0)
    return session.now() + seconds


@contextmanager
def notifier_of(
    receivers: Sequence[Receiver], folder: Path, note: Callable[[str], object], pauses: tuple[float, ...] | None = None
) -> Iterator[Notifier]:
    """The notifier of a day for the block; at its end, what waits is delivered for some seconds.

    ``folder``: of the document. ``note`` is called once for each receiver that fails, from any thread. ``pauses``: wall
    seconds between two tries.
    """
    if not receivers:
        yield NoNotifier()
        return
    ended = threading.Event()
    with closing(SystemClock()) as clock:
        requester = Requester(ended) if pauses is None else Requester(ended, pauses)
        names = _numbered([str(each) for each in receivers])
        made = [
            _subscription(name, each, folder, requester, clock.now) for name, each in zip(names, receivers, strict=True)
        ]
        with closing(QueueNotifier(made, note, ended)) as notifier:
            yield notifier


def _numbered(names: Sequence[str]) -> list[str]:
    """``names``, from the second of the same name on with a number: ``slack (2)``."""
    return [f"{name} ({n})" if (n := names[: i + 1].count(name)) > 1 else name for i, name in enumerate(names)]


def _subscription(
    name: str, receiver: Receiver, folder: Path, requester: Requester, now: Callable[[], float]
) -> Subscription:
    on = receiver.on if isinstance(receiver, WebhookReceiver | ChatReceiver) else None
    try:
        delivery = _delivery(receiver, folder, requester, now)
    except NodefallError as error:  # a secret that cannot be read is no reason not to run the day
        delivery = _Unusable(error.message)
    return Subscription(name, delivery, on)


def _delivery(receiver: Receiver, folder: Path, requester: Requester, now: Callable[[], float]) -> Delivery:
    """Raises Refused if a secret cannot be read."""
    match receiver:
        case WebhookReceiver():
            return Webhook(receiver.url, _read(receiver.key), requester, now)
        case ChatReceiver():
            return Chat(receiver.kind, _read_url(receiver.url), requester)
        case GrafanaReceiver():
            return Grafana(receiver.url, _read(receiver.token), receiver.tags, requester)
        case AlertmanagerReceiver():
            return Alertmanager(receiver.url, receiver.silence, _read(receiver.token), requester, now)
        case MetricsReceiver():
            if receiver.directory is not None:
                return TextfileCollector(folder / receiver.directory)
            return Pushgateway(receiver.pushgateway or "", _read(receiver.token), requester)


def _read(secret: Secret | None) -> str:
    return resolve_secret(secret) if secret else ""


def _read_url(secret: Secret) -> str:
    """A URL that is a secret: so is its path alone, which errors of libraries may repeat."""
    url = resolve_secret(secret).strip()
    parts = urlsplit(url)
    register_secret(parts.path)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NodefallError("its URL is not one of http or https")
    return url


class _Unusable:
    """A receiver to which nothing can be sent."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def deliver(self, event: DayEvent) -> None:  # noqa: ARG002 - a Delivery
        raise NodefallError(self._reason)
