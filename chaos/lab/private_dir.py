"""The private directory of a lab. Changes require the lock on its file :data:`LOCK`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

LOCK = "lock"


def remove_directory(directory: Path) -> None:
    """Remove the directory and its files. The lock is removed last, so that no other lab takes a half-removed one."""
    with suppress(FileNotFoundError):
        for path in directory.iterdir():
            if path.name != LOCK:
                path.unlink(missing_ok=True)
    (directory / LOCK).unlink(missing_ok=True)
    with suppress(OSError):  # a new lab is being created in it
        directory.rmdir()
