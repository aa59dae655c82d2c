"""Annotations of Grafana: one for each entry, from its begin to its end.

https://grafana.com/docs/grafana/latest/developers/http_api/annotations/ (create, and patch: times in milliseconds)
"""

from __future__ import annotations

from typing import Any

from chaos.gameday.messages import details, headline
from chaos.gameday.notifier import DayEvent, EventKind
from chaos.gameday.notify.requester import Requester, bearer, decode_answer


class Grafana:
    """An annotation is created at the begin of an entry, and made a region at its end."""

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
        """After a restart of this process, or a begin that was not delivered, there is no annotation to change."""
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
