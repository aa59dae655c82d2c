"""Delivers events in threads, one for each receiver, so that none waits for another and no run waits for any.

Requests to receivers are repeated while there is hope that they succeed.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from chaos.cluster.observers.http_client import HttpFailed, http_request, server_of
from chaos.core.errors import NodefallError
from chaos.core.ports import Response
from chaos.core.text import printable
from chaos.core.threads import ContextThread
from chaos.gameday.document import Occasion
from chaos.gameday.events import DayEvent, EventKind, Undelivered

_SECONDS = 10.0  # wall time of one request
_PAUSES = (1.0, 3.0, 9.0)  # wall seconds between two tries
_MAX_PAUSE = 30.0  # that a receiver may ask for
_TEMPORARY = (408, 429)
_SHOWN = 200  # characters of an answer
_CAPACITY = 100  # events that wait for a receiver
_CLOSE_SECONDS = 15.0  # wall seconds in which the last events are delivered at the end
_log = logging.getLogger(__name__)


@dataclass
class Requester:
    """``ended``: the process ends, so nothing is repeated. ``pauses``: between two tries."""

    ended: threading.Event = field(default_factory=threading.Event)
    pauses: tuple[float, ...] = _PAUSES

    def send(self, method: str, url: str, body: Any, headers: Mapping[str, str] | None = None) -> Response:
        """Send JSON, nothing for None, and return the successful answer. Raises NodefallError after the last try."""
        if body is None:
            return self.send_bytes(method, url, b"", headers or {})
        content = {"Content-Type": "application/json", **(headers or {})}
        return self.send_bytes(method, url, json.dumps(body).encode(), content)

    def send_bytes(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """As :meth:`send`, of any content."""
        pauses = iter(self.pauses)
        while True:
            why, wait = self._try(method, url, body, headers)
            if isinstance(why, Response):
                return why
            pause = next(pauses, None)
            if wait is None or pause is None or self.ended.wait(max(pause, wait)):
                raise NodefallError(why)

    def _try(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[Response | str, float | None]:
        """The answer, or why there is none, and the seconds to wait at least; None if another try is in vain."""
        try:
            response = http_request(method, url, headers=headers, body=body, seconds=_SECONDS)
        except HttpFailed as error:
            return error.message, 0.0
        if 200 <= response.status < 300:
            return response, None
        text = printable(response.body.decode("utf-8", "replace"), _SHOWN)
        why = f"{server_of(url)}: it answers {response.status} {text}".rstrip()
        is_temporary = response.status in _TEMPORARY or response.status >= 500
        return why, _retry_after(response) if is_temporary else None


def bearer(token: str) -> dict[str, str]:
    """The header for a token, none without one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def decode_answer(response: Response, where: str) -> Any:
    """The JSON in an answer. Raises NodefallError."""
    try:
        return json.loads(response.body)
    except ValueError as error:
        raise NodefallError(f"{server_of(where)}: its response is not JSON") from error


def _retry_after(response: Response) -> float:
    header = next((value for name, value in response.headers.items() if name.lower() == "retry-after"), "")
    return min(float(header), _MAX_PAUSE) if header.isascii() and header.isdigit() else 0.0


class Delivery(Protocol):
    """A receiver."""

    def deliver(self, event: DayEvent) -> None:
        """Deliver the event, or do nothing if it is of no interest. Raises NodefallError."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A receiver, by its name for people; ``on``: only events of these occasions, None for all."""

    name: str
    delivery: Delivery
    on: Collection[Occasion] | None = None

    def wants(self, event: DayEvent) -> bool:
        return self.on is None or not event.occasions.isdisjoint(self.on)


class QueueNotifier:
    """A Notifier. ``note`` is called once for each receiver that fails. ``ended``: is set by :meth:`close`."""

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        note: Callable[[str], object],
        ended: threading.Event,
        capacity: int = _CAPACITY,
    ) -> None:
        self._note, self._ended = note, ended
        self._failed: list[Undelivered] = []
        self._noted: set[str] = set()
        self._lock = threading.Lock()
        self._queues = [_Queue(each, queue.Queue(capacity)) for each in subscriptions]
        self._threads = [ContextThread(each.loop(self._deliver), f"notify {each.name}") for each in self._queues]
        for thread in self._threads:
            thread.start()

    @property
    def undelivered(self) -> tuple[Undelivered, ...]:
        with self._lock:
            return tuple(self._failed)

    def send(self, event: DayEvent) -> None:
        for each in self._queues:
            if each.subscription.wants(event) and not each.put(event):
                self._fail(each.name, event.kind, event.at, "too many events wait for this receiver")

    def close(self, seconds: float = _CLOSE_SECONDS) -> None:
        """Deliver what waits, for at most ``seconds`` of wall time."""
        deadline = time.monotonic() + seconds
        for each in self._queues:
            each.end()
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        self._ended.set()
        for each in self._queues:
            for event in each.waiting():
                self._fail(each.name, event.kind, event.at, "not delivered before the end of the process")

    def _deliver(self, subscription: Subscription, event: DayEvent) -> None:
        try:
            subscription.delivery.deliver(event)
        except NodefallError as error:
            self._fail(subscription.name, event.kind, event.at, error.message)
        except Exception as error:  # noqa: BLE001 - no bug in a receiver may end its thread
            _log.exception("a notification failed")
            self._fail(subscription.name, event.kind, event.at, f"unexpected {type(error).__name__}, see the log")

    def _fail(self, name: str, kind: EventKind, at: float, reason: str) -> None:
        text = printable(reason)
        with self._lock:
            if any((each.receiver, each.kind, each.at) == (name, kind, at) for each in self._failed):
                return  # what was still being delivered at the end
            self._failed.append(Undelivered(name, kind, at, text))
            is_first = name not in self._noted
            self._noted.add(name)
        _log.warning("%s to %s was not delivered: %s", kind, name, text)
        if is_first:
            self._note(f"notification to {name} failed: {text}")


class _Queue:
    """The events that wait for one receiver, and the one that is being delivered."""

    def __init__(self, subscription: Subscription, events: queue.Queue[DayEvent | None]) -> None:
        self.subscription, self._events = subscription, events
        self._current: DayEvent | None = None
        self._is_ending = False

    @property
    def name(self) -> str:
        return self.subscription.name

    def put(self, event: DayEvent) -> bool:
        """Returns False if too many wait."""
        try:
            self._events.put_nowait(event)
        except queue.Full:
            return False
        return True

    def end(self) -> None:
        """End the loop after what waits now."""
        self._is_ending = True
        with suppress(queue.Full):  # then the loop is busy, and sees the flag
            self._events.put_nowait(None)

    def loop(self, deliver: Callable[[Subscription, DayEvent], None]) -> Callable[[], None]:
        def run() -> None:
            while not (self._is_ending and self._events.empty()):
                self._current = self._events.get()
                if self._current is None:
                    return
                deliver(self.subscription, self._current)
                self._current = None

        return run

    def waiting(self) -> list[DayEvent]:
        """Events that are still to be delivered."""
        found = [self._current] if self._current else []
        while True:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return found
            if event is not None:
                found.append(event)
