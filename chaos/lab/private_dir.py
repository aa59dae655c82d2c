"""The private directory of a lab. Whoever holds the lock on its file :data:`LOCK` may change it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

LOCK = "lock"


def remove_directory(directory: Path) -> None:
    """Remove the directory and its files. The lock goes last: nobody else takes a directory that is half removed."""
    with suppress(FileNotFoundError):
        for path in directory.iterdir():
            if path.name != LOCK:
                path.unlink(missing_ok=True)
    (directory / LOCK).unlink(missing_ok=True)
    with suppress(OSError):  # somebody makes a new lab in it already
        directory.rmdir()
