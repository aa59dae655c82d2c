"""Keys of the JSON documents of undo."""

from __future__ import annotations

from typing import Any


def with_former_key(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the key that 0.1 had for ``pendingUndo``, too."""
    return document | {"owed": document["pendingUndo"]}  # words: keep
