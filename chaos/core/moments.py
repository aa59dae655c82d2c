"""Moments in stored files, and in JSON for programs: seconds since the epoch, and RFC 3339 beside them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import Meta

FIRST, LAST = -62_135_596_800, 253_402_300_799  # of the years 1 to 9999
# Seconds since the epoch that a date can show.
Moment = Annotated[float, Meta(ge=FIRST, le=LAST)]
RFC3339 = "_rfc3339"  # the end of the key beside that of a moment
MOMENT_KEYS = frozenset({
    "armed", "at", "began", "begin", "begun", "created", "deadline", "ended", "fired", "gates_held", "proven",
    "resumed_at", "returned", "since", "start", "started", "t", "until",
})  # fmt: skip


def add_rfc3339(value: Any) -> Any:
    """A copy of JSON types in which each moment has its date and time beside it: ``started_rfc3339``."""
    if isinstance(value, list | tuple):
        return [add_rfc3339(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, item in value.items():
        found[key] = add_rfc3339(item)
        if (
            key in MOMENT_KEYS
            and isinstance(item, int | float)
            and not isinstance(item, bool)
            and FIRST <= item <= LAST
        ):
            found[f"{key}{RFC3339}"] = rfc3339(item)
    return found


def rfc3339(t: float, timespec: str = "microseconds") -> str:
    """``2026-11-21T03:35:37.123456Z``. ``timespec``: the unit of the last digits."""
    return datetime.fromtimestamp(t, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def rounded(value: Any) -> Any:
    """A copy of JSON types with numbers to the microsecond: what a sum of floats adds beyond is no measurement."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return {key: rounded(item) for key, item in value.items()} if isinstance(value, dict) else value
