"""Notifications about a game day, from its document."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from chaos.app.inventory_secrets import resolve_secret
from chaos.core.clock import SystemClock
from chaos.core.errors import NodefallError
from chaos.core.field_types import Secret
from chaos.core.redaction import register_secret
from chaos.gameday.document import (
    AlertmanagerReceiver,
    ChatReceiver,
    GrafanaReceiver,
    MetricsReceiver,
    Receiver,
    WebhookReceiver,
)
from chaos.gameday.events import DayEvent, NoNotifier, Notifier
from chaos.gameday.notify.delivery import Delivery, QueueNotifier, Requester, Subscription
from chaos.gameday.notify.receivers import Alertmanager, Chat, Grafana, Pushgateway, TextfileCollector, Webhook


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
