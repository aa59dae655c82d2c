"""Hints for files that do not exist."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

_MAX_NAMES = 1000  # of a directory that are compared


def missing_file_hint(path: Path) -> str:
    """What the user may have meant: a file with a similar name, or why there is none. "" without an idea."""
    folder = path.parent
    try:
        if not folder.is_dir():
            return f"there is no directory {str(folder)!r}"
        names = [entry.name for _, entry in zip(range(_MAX_NAMES), folder.iterdir(), strict=False) if entry.is_file()]
    except (OSError, ValueError):
        return ""
    same_stem = [name for name in names if Path(name).stem == path.name or Path(name).stem == path.stem]
    nearest = next(iter(same_stem or get_close_matches(path.name, names, 1, 0.75)), None)
    if nearest:
        return f"did you mean {str(folder / nearest)!r}?"
    return "" if path.is_absolute() else f"paths are relative to {Path.cwd()}"
