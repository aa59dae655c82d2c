"""Values of YAML on one line, as the examples of actions and assertions are written."""

from __future__ import annotations

from typing import Any

import yaml

_WIDE = 100_000  # columns: never fold


def parse_flow(text: str) -> dict[str, Any]:
    """The mapping in a text such as ``{assert: pods-stuck, within: 5s}``."""
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def flow(value: Any) -> str:
    """The value on one line, keys in order."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=_WIDE, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
