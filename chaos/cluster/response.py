"""Response of the API server: its JSON, its message, its Retry-After."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.errors import NodefallError, Refused
from chaos.core.ports import Response

_RIGHTS = "grant the permissions that nodefall rbac prints"


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


def check_success(
    response: Response, what: str, hint: str = _RIGHTS, forbidden: Collection[int] = frozenset({403})
) -> None:
    """``what`` has failed if the response is an error. Raises Refused for a status of ``forbidden``, NodefallError."""
    if response.status in forbidden:
        raise Refused(f"{what}: {status_message(response)}", hint=hint)
    if response.status >= 300:
        raise NodefallError(f"{what}: {response.status}: {status_message(response)}")


def check_fleet_success(response: Response, what: str) -> None:
    """As :func:`check_success`, in a cluster of a fleet, whose credentials may be wrong, too."""
    check_success(response, what, f"{_RIGHTS} for the fleet", frozenset({401, 403}))


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
