"""Requests to receivers, repeated while there is hope that they succeed."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.cluster.observers.http_client import HttpFailed, http_request, server_of
from chaos.core.errors import NodefallError
from chaos.core.ports import Response
from chaos.core.text import printable

_SECONDS = 10.0  # wall time of one request
_PAUSES = (1.0, 3.0, 9.0)  # wall seconds between two tries
_MAX_PAUSE = 30.0  # that a receiver may ask for
_TEMPORARY = (408, 429)
_SHOWN = 200  # characters of an answer


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
        raise NodefallError(f"{server_of(where)}: its answer is no JSON") from error


def _retry_after(response: Response) -> float:
    header = next((value for name, value in response.headers.items() if name.lower() == "retry-after"), "")
    return min(float(header), _MAX_PAUSE) if header.isascii() and header.isdigit() else 0.0
