"""Files that a command was asked to write."""

from __future__ import annotations

from pathlib import Path

from chaos.model.errors import UsageError


def write(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8. Raises UsageError where that is not possible."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}", hint="name another file or directory"
        ) from error
