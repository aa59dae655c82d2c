"""The receivers of notifications, a class each.

A webhook gets JSON, signed by HMAC-SHA256 if there is a key. The signature covers the time and the body, so that
neither can be replayed with the other: ``X-Nodefall-Signature: t=SECONDS,v1=HEX`` with
HEX = HMAC-SHA256(key, "SECONDS." + body). A receiver computes it again, compares in constant time, and refuses a time
that is minutes away from its own.

Grafana: https://grafana.com/docs/grafana/latest/developers/http_api/annotations/ (create, and patch: milliseconds).
Alertmanager: https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml
Metrics: https://github.com/prometheus/pushgateway#put-method and
https://github.com/prometheus/node_exporter#textfile-collector: files ``*.prom``, replaced as a whole.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from chaos.core.errors import NodefallError
from chaos.core.metrics import Metric, Sample, exposition
from chaos.gameday.events import (
    DayEvent,
    EventKind,
    details,
    format_time,
    headline,
    slack_message,
    teams_message,
    webhook_document,
)
from chaos.gameday.notify.delivery import Requester, bearer, decode_answer
from chaos.gameday.state import RUN_WORDS, DayStatus

SIGNATURE, EVENT = "X-Nodefall-Signature", "X-Nodefall-Event"
_CHATS = {"slack": slack_message, "teams": teams_message}
_DEFAULT_SECONDS = 4 * 3600.0  # of a day whose end is unknown
_MAX_SECONDS = 24 * 3600.0  # a silence must end without its process
_MARGIN = 600.0  # seconds: the last undo may take longer than the window
_OVER = "expired"
_DAY_STATUSES = {
    EventKind.DAY_BEGINS: DayStatus.RUNNING,
    EventKind.HALTED: DayStatus.HALTED,
    EventKind.DAY_ENDS: DayStatus.FINISHED,
}
_READABLE = 0o644  # the node exporter is another user
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Webhook:
    """``now``: seconds since the epoch, of this machine's clock."""

    def __init__(self, url: str, key: str, requester: Requester, now: Callable[[], float]) -> None:
        self._url, self._key, self._requester, self._now = url, key, requester, now

    def deliver(self, event: DayEvent) -> None:
        body = json.dumps(webhook_document(event)).encode()
        headers = {"Content-Type": "application/json", EVENT: str(event.kind)}
        if self._key:
            headers[SIGNATURE] = signature(self._key, body, int(self._now()))
        self._requester.send_bytes("POST", self._url, body, headers)


class Chat:
    """An incoming webhook of Slack, or a workflow of Teams; ``url`` is a secret."""

    def __init__(self, kind: str, url: str, requester: Requester) -> None:
        self._format, self._url, self._requester = _CHATS[kind], url, requester

    def deliver(self, event: DayEvent) -> None:
        self._requester.send("POST", self._url, self._format(event))


def signature(key: str, body: bytes, t: int) -> str:
    """The value of the signature header for a body that is sent at ``t``, seconds since the epoch."""
    signed = f"{t}.".encode() + body
    return f"t={t},v1={hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()}"


class Grafana:
    """An annotation is created at the start of an entry, and made a region at its end."""

    def __init__(self, url: str, token: str, tags: list[str], requester: Requester) -> None:
        self._url, self._tags, self._requester = f"{url.rstrip('/')}/api/annotations", tags, requester
        self._headers = bearer(token)
        self._ids: dict[str, int] = {}  # of annotations that are points still, by run

    def deliver(self, event: DayEvent) -> None:
        if event.kind is EventKind.ENTRY_BEGINS:
            self._begin(event)
        elif event.kind is EventKind.ENTRY_ENDS:
            self._end(event)

    def _begin(self, event: DayEvent) -> None:
        body = {"time": _millis(event.at), "tags": self._tags_of(event), "text": headline(event)}
        answer = decode_answer(self._requester.send("POST", self._url, body, self._headers), self._url)
        if isinstance(answer, dict) and isinstance(answer.get("id"), int):
            self._ids[event.run] = answer["id"]

    def _end(self, event: DayEvent) -> None:
        """After a restart of this process, or a start that was not delivered, there is no annotation to change."""
        text = "\n".join([headline(event), *(f"{name}: {value}" for name, value in details(event))])
        body: dict[str, Any] = {"timeEnd": _millis(event.at), "tags": self._tags_of(event), "text": text}
        known = self._ids.pop(event.run, None)
        if known is not None:
            self._requester.send("PATCH", f"{self._url}/{known}", body, self._headers)
            return
        begin = event.at if event.begun is None else event.begun
        self._requester.send("POST", self._url, {"time": _millis(begin), **body}, self._headers)

    def _tags_of(self, event: DayEvent) -> list[str]:
        tags = (*self._tags, event.gameday, event.entry, event.cluster, event.verdict)
        return list(dict.fromkeys(tag for tag in tags if tag))


def _millis(t: float) -> int:
    return round(t * 1000)


class Alertmanager:
    """Silences alerts with the labels ``silence``. ``now``: seconds since the epoch, of this machine's clock."""

    def __init__(
        self, url: str, silence: Mapping[str, str], token: str, requester: Requester, now: Callable[[], float]
    ) -> None:
        self._url, self._silence, self._requester, self._now = f"{url.rstrip('/')}/api/v2", silence, requester, now
        self._headers = bearer(token)

    def deliver(self, event: DayEvent) -> None:
        if event.kind is EventKind.DAY_BEGINS:
            self._begin(event)
        elif event.kind in (EventKind.DAY_ENDS, EventKind.HALTED):
            for identifier in self._find(event):
                self._requester.send("DELETE", f"{self._url}/silence/{quote(identifier, safe='')}", None, self._headers)

    def _begin(self, event: DayEvent) -> None:
        """A day that continues after an interruption extends its silence."""
        seconds = _DEFAULT_SECONDS if event.until is None else event.until - event.at + _MARGIN
        now = self._now()
        body: dict[str, Any] = {
            "matchers": self._matchers(),
            "startsAt": format_time(now),
            "endsAt": format_time(now + min(max(seconds, _MARGIN), _MAX_SECONDS)),
            "createdBy": "nodefall",
            "comment": _comment(event),
        }
        for identifier in self._find(event):
            body["id"] = identifier
        self._requester.send("POST", f"{self._url}/silences", body, self._headers)

    def _matchers(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "value": value, "isRegex": False, "isEqual": True} for name, value in self._silence.items()
        ]

    def _find(self, event: DayEvent) -> list[str]:
        """The silences of this day that are in force, also of a former process.

        Those with other labels are left out by the server: it may have many, and an answer is bounded.
        """
        labels = urlencode([("filter", f'{name}="{_escape(value)}"') for name, value in self._silence.items()])
        response = self._requester.send("GET", f"{self._url}/silences?{labels}", None, self._headers)
        found = decode_answer(response, self._url)
        silences = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        ours = (each for each in silences if each.get("comment") == _comment(event))
        return [str(each["id"]) for each in ours if _state(each) != _OVER and "id" in each]


def _escape(value: str) -> str:
    """The value of a label in a matcher, without its quotes."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _state(silence: dict[str, Any]) -> str:
    status = silence.get("status")
    return str(status.get("state")) if isinstance(status, dict) else ""


def _comment(event: DayEvent) -> str:
    where = f" on {event.cluster}" if event.cluster else ""
    return f"nodefall game day {event.gameday}, {event.day}{where}"


class Pushgateway:
    """Each entry, and the day, is a group that replaces its former one."""

    def __init__(self, url: str, token: str, requester: Requester) -> None:
        self._url, self._requester, self._headers = url.rstrip("/"), requester, bearer(token)

    def deliver(self, event: DayEvent) -> None:
        if metrics := day_metrics(event):
            key = {"job": "nodefall", **_group(event)}
            path = "/".join(f"{quote(name, safe='')}/{quote(value, safe='')}" for name, value in key.items())
            headers = {"Content-Type": _CONTENT_TYPE, **self._headers}
            self._requester.send_bytes("PUT", f"{self._url}/metrics/{path}", exposition(metrics).encode(), headers)


class TextfileCollector:
    """Each entry, and the day, is a file that replaces its former one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def deliver(self, event: DayEvent) -> None:
        if metrics := day_metrics(event):
            group = _group(event)
            path = self._directory / f"nodefall_{'_'.join(group.values())}.prom"
            text = exposition(metric.with_labels(group) for metric in metrics)
            try:
                _replace(path, text.encode())
            except OSError as error:
                raise NodefallError(f"{path} cannot be written: {error.strerror}") from error


def day_metrics(event: DayEvent) -> Sequence[Metric]:
    """The metrics that an event brings, without the labels of their group."""
    if event.kind not in _DAY_STATUSES:
        return event.metrics
    runs = tuple(Sample(event.counts.get(name, 0), {"verdict": name}) for name in RUN_WORDS)
    status = _DAY_STATUSES[event.kind]
    statuses = tuple(Sample(float(status is each), {"status": str(each)}) for each in DayStatus)
    ended = (Sample(event.at),) if status is DayStatus.FINISHED else ()
    written = (Sample(event.at),)
    return (
        Metric("nodefall_gameday_runs", "Runs of the last game day, by verdict or status.", runs),
        Metric("nodefall_gameday_status", "1 for the status of the last game day, 0 for each other status.", statuses),
        Metric("nodefall_gameday_timestamp_seconds", "When the status of the last game day was sent.", written),
        Metric("nodefall_gameday_end_timestamp_seconds", "When the last game day ended.", ended),
    )


def _group(event: DayEvent) -> Mapping[str, str]:
    """Names of game days, clusters and entries have no character that a path or a file name must not have."""
    labels = {"gameday": event.gameday, "cluster": event.cluster, "entry": event.entry}
    return {name: value for name, value in labels.items() if value}


def _replace(path: Path, data: bytes) -> None:
    """Write the whole file at once: the node exporter may read it at any time. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(_READABLE)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
