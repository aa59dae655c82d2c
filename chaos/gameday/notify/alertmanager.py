"""A silence of Alertmanager from the begin of the day to its end, or until it is halted.

https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from chaos.gameday.messages import format_time
from chaos.gameday.notifier import DayEvent, EventKind
from chaos.gameday.notify.requester import Requester, bearer, decode_answer

_DEFAULT_SECONDS = 4 * 3600.0  # of a day whose end is unknown
_MAX_SECONDS = 24 * 3600.0  # a silence must end without its process
_MARGIN = 600.0  # seconds: the last undo may take longer than the window
_OVER = "expired"


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
        """A day that goes on after an interruption extends its silence."""
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
