"""Response of the API server: its JSON, its message, its Retry-After."""

from __future__ import annotations

from typing import Any

import msgspec

from chaos.kube.watch_codec import DECODE_ERRORS
from chaos.model.errors import NodefallError
from chaos.model.ports import Response


def decode_body(response: Response) -> Any:
    """The JSON of the body. Raises NodefallError."""
    try:
        return msgspec.json.decode(response.body)
    except DECODE_ERRORS as error:
        raise NodefallError(f"invalid response of the API server: {error}") from error


def status_message(response: Response) -> str:
    """The message of a Status with its causes; the first 200 bytes of any other body."""
    try:
        status = msgspec.json.decode(response.body, type=_Status)
    except DECODE_ERRORS:
        return response.body[:200].decode("utf-8", "replace")
    return " ".join([status.message, *(cause.message for cause in status.details.causes)]).strip()


def retry_after(response: Response) -> float | None:
    """Seconds of the Retry-After header, None without one."""
    text = next((value for name, value in response.headers.items() if name.lower() == "retry-after"), "")
    return float(text) if text.isdigit() else None


class _Cause(msgspec.Struct):
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Status(msgspec.Struct):
    message: str = ""
    details: _Details = msgspec.field(default_factory=_Details)
