"""Columns of a table, interned strings, and the compression of the page's data."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from chaos.core.text import printable


class StringTable:
    """Strings by index, each stored once; all are printable."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._indexes: dict[str, int] = {}
        self._of_raw: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Index of ``text``, after escaping."""
        found = self._of_raw.get(text)
        if found is None:
            shown = printable(text)
            found = self._indexes.setdefault(shown, len(self.strings))
            if found == len(self.strings):
                self.strings.append(shown)
            self._of_raw[text] = found
        return found


class Columns(dict[str, list[Any]]):
    """Rows stored by column, which compresses better than objects and is read faster."""

    def __init__(self, *names: str) -> None:
        super().__init__((name, []) for name in names)

    def append(self, *row: Any) -> None:
        """Add one row, in the order of the names."""
        for column, value in zip(self.values(), row, strict=True):
            column.append(value)

    def __len__(self) -> int:
        return len(next(iter(self.values())))


def pack(value: Any) -> str:
    """JSON, compressed (zlib), in base64: what the script unpacks with DecompressionStream("deflate")."""
    return pack_text(json.dumps(value, separators=(",", ":"), sort_keys=True))


def pack_text(text: str) -> str:
    """The same of JSON that is text already."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def unpack(text: str) -> Any:
    """The value that :func:`pack` was given."""
    return json.loads(zlib.decompress(base64.b64decode(text)))
