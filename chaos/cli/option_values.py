"""Values of options that are checked when the command begins."""

from __future__ import annotations

from chaos.core.duration import parse_duration
from chaos.core.errors import UsageError


def seconds_of(option: str, text: str) -> float:
    """The seconds of a duration. ``option``: its name, as ``--wait``. Raises UsageError."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
