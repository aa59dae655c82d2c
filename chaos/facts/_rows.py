"""Rows of JSON that the programs of iproute2 print."""

from __future__ import annotations

import json
from typing import Any


def json_rows(text: str) -> list[dict[str, Any]]:
    """The mappings of a JSON array; none of an empty text. Raises ValueError."""
    rows = json.loads(text) if text.strip() else []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{text.strip()[:80]!r} is no list of mappings")
    return rows
