"""Durations as Kubernetes writes them (``90s``, ``1m30s``, ``1.5h``, ``250ms``), and its timestamps."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)", re.ASCII)
_LIMIT = 366 * 86400.0


def parse_duration(text: str) -> float:
    """Seconds in ``text``. Raises ValueError with the accepted format."""
    parts = _PART.findall(text)
    if not parts or "".join(n + u for n, u in parts) != text:
        raise ValueError(f"invalid duration {text!r}; write it like 90s, 5m or 1m30s")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds > _LIMIT:
        raise ValueError(f"{text!r} is longer than a year")
    return float(seconds)


def format_duration(seconds: float) -> str:
    """The shortest text for a duration in milliseconds precision, with a sign if negative."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    millis = round(seconds * 1000)
    if millis < 60_000:
        return f"{millis / 1000:g}s"
    hours, rest = divmod(millis, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    text = (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes else "")
    return text + (f"{rest / 1000:g}s" if rest else "")


def timestamp(t: float) -> str:
    """Timestamp as in Kubernetes objects: RFC 3339, whole seconds, UTC. ``t``: seconds since the epoch."""
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
