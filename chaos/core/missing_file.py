"""Hints for files that do not exist."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

_MAX_NAMES = 1000  # of a directory that are compared


def missing_file_hint(path: Path, remedy: str = "") -> str:
    """What the user may have meant: a file with a similar name, or the same one in a directory beside; else ``remedy``.

    "" without an idea.
    """
    folder = path.parent
    try:
        if not folder.is_dir():
            return f"there is no directory {str(folder)!r}"
        entries = [entry for _, entry in zip(range(_MAX_NAMES), folder.iterdir(), strict=False)]
        names = [entry.name for entry in entries if entry.is_file()]
        below = [entry.name for entry in sorted(entries) if entry.is_dir() and (entry / path.name).is_file()]
    except (OSError, ValueError):
        return ""
    same_stem = [name for name in names if Path(name).stem == path.name or Path(name).stem == path.stem]
    similar = same_stem or [f"{name}/{path.name}" for name in below] or get_close_matches(path.name, names, 1, 0.75)
    if similar:
        return f"did you mean {str(folder / similar[0])!r}?"
    where = "" if path.is_absolute() else f"check the path, which is relative to {Path.cwd()}"
    return ", or ".join(filter(None, [where, remedy]))
