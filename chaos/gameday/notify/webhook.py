"""JSON to a URL, signed by HMAC-SHA256 if there is a key.

The signature covers the time and the body, so that neither can be replayed with the other:
``X-Nodefall-Signature: t=SECONDS,v1=HEX`` with HEX = HMAC-SHA256(key, "SECONDS." + body). A receiver computes it again,
compares in constant time, and refuses a time that is minutes away from its own.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable

from chaos.gameday.messages import slack_message, teams_message, webhook_document
from chaos.gameday.notifier import DayEvent
from chaos.gameday.notify.requester import Requester

SIGNATURE, EVENT = "X-Nodefall-Signature", "X-Nodefall-Event"
_CHATS = {"slack": slack_message, "teams": teams_message}


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
