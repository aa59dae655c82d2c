"""What does not go together with ``--fleet``."""

from __future__ import annotations

from chaos.core.errors import UsageError


def refuse_with_fleet(**given: object) -> None:
    """Raises UsageError for the first argument or option that is given besides --fleet. Upper case: an argument."""
    name = next((name for name, value in given.items() if value is not None and value is not False), "")
    if name:
        shown = name if name.isupper() else f"--{name}"
        raise UsageError(f"{shown} does not go with --fleet", hint="the fleet names its game day and its clusters")
