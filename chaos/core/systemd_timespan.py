"""Time spans as systemd prints them: ``1h 2min 3.456789s``."""

from __future__ import annotations

import re

# systemd.time(7); a month is 30.44 days and a year 365.25, as in src/basic/time-util.h.
_UNITS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
    "month": 2629800.0,
    "y": 31557600.0,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|min|h|d|w|month|y)", re.ASCII)


def parse_timespan(text: str) -> float | None:
    """Seconds; None for ``infinity``, an empty text and any other text."""
    total = 0.0
    for word in text.split():
        part = _PART.fullmatch(word)
        if part is None:
            return None
        total += float(part[1]) * _UNITS[part[2]]
    return total if text.strip() else None
