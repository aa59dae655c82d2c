"""What an API server's answer says."""

from __future__ import annotations

from typing import Any

import msgspec

from chaos.kube.watch_codec import DECODE_ERRORS
from chaos.model.errors import NodefallError
from chaos.model.ports import Response


def decode_body(response: Response) -> Any:
    """Its JSON. Raises NodefallError."""
    try:
        return msgspec.json.decode(response.body)
    except DECODE_ERRORS as error:
        raise NodefallError(f"the API server's answer is not understood: {error}") from error


def status_message(response: Response) -> str:
    """The message of a Status, with its causes; the begin of anything else."""
    try:
        status = msgspec.json.decode(response.body, type=_Status)
    except DECODE_ERRORS:
        return response.body[:200].decode("utf-8", "replace")
    return " ".join([status.message, *(cause.message for cause in status.details.causes)]).strip()


def retry_after(response: Response) -> float | None:
    """Seconds that the server asks to wait, None if it does not say."""
    text = next((value for name, value in response.headers.items() if name.lower() == "retry-after"), "")
    return float(text) if text.isdigit() else None


class _Cause(msgspec.Struct):
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Status(msgspec.Struct):
    message: str = ""
    details: _Details = msgspec.field(default_factory=_Details)
