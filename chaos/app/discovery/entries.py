"""An inventory as a tree of entries, each with the reason that its comment gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value: entries below it, or a scalar, list or mapping that is written on the same line."""

    key: str
    value: Any
    reason: str = ""


Entries = tuple[Entry, ...]


def to_document(entries: Entries) -> dict[str, Any]:
    """The tree as a mapping of builtins."""
    return {each.key: to_document(each.value) if is_section(each) else each.value for each in entries}


def is_section(entry: Entry) -> bool:
    """Whether its value are entries."""
    return isinstance(entry.value, tuple)
