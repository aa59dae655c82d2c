"""Directories of game days: ``reports/gamedays/<game day>/<day>/``, with a record of each cluster and the reports."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from chaos.core.errors import Refused, UsageError
from chaos.core.files import DIRECTORY_MODE

FOLDER = "gamedays"
_RECORDS = "cluster-*.json"


def record_name(cluster: str) -> str:
    """The file of a cluster's record; ``cluster`` is a name."""
    return f"cluster-{cluster}.json"


def choose(root: Path, gameday: str, day: str, cluster: str, is_same: Callable[[Path], bool]) -> Path:
    """The directory for the record of this day, made if it is missing: another day of the same name keeps its own.

    ``is_same``: whether a record is of this day. Raises Refused if it cannot be created.
    """
    parent = root / FOLDER / gameday
    for attempt in range(1, 1000):
        directory = parent / (day if attempt == 1 else f"{day}-{attempt}")
        record = directory / record_name(cluster)
        if not os.path.lexists(record) or is_same(record):
            return _make(directory)
    raise UsageError(f"{parent}: too many days are called {day}")


def _make(directory: Path) -> Path:
    try:
        directory.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    except OSError as error:
        raise Refused(f"cannot create the directory of the game day {directory}: {error.strerror}") from error
    return directory


def find(root: Path, name: str) -> Path:
    """The directory of a day: a path, GAMEDAY/DAY, or GAMEDAY or ``last`` for the newest. Raises UsageError."""
    for candidate in (Path(name), root / FOLDER / name):
        if records(candidate):
            return candidate
    pattern = "*" if name == "last" else name
    one_name = Path(pattern).name == pattern and pattern not in ("", "..")
    found = list((root / FOLDER).glob(f"{pattern}/*/{_RECORDS}")) if one_name else []
    if not found:
        raise UsageError(f"no game day {name!r} in {root / FOLDER}", hint="give its directory, GAMEDAY/DAY or last")
    return max(found, key=lambda path: path.stat().st_mtime_ns).parent


def names(root: Path) -> list[str]:
    """Every day in it, as GAMEDAY/DAY."""
    found = {path.parent for path in (root / FOLDER).glob(f"*/*/{_RECORDS}")}
    return sorted(f"{path.parent.name}/{path.name}" for path in found)


def records(directory: Path) -> list[Path]:
    """The records in it, one for each cluster."""
    return sorted(directory.glob(_RECORDS))
