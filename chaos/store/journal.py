"""The journal: what was about to be done is on disk before it is done, with how to take it back.

JSON Lines, appended and fsynced. An entry is struck only when its undo is proven.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct

from chaos.model.action import Undo
from chaos.model.errors import bad_input

NAME = "journal.jsonl"


class Owed(Struct, frozen=True):
    """One deed and its undo."""

    id: int
    step: str
    action: str
    node: str
    undo: Undo
    t: float


class _Record(Struct, frozen=True, omit_defaults=True):
    """One line: a deed about to be done, or the proof that one was undone."""

    intent: Owed | None = None
    struck: int | None = None
    because: str = ""


class Journal:
    """Of one run. Not thread safe: the engine's main thread owns it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        self._owed, self._last = _read(self.path)
        self._file = self.path.open("ab")
        _sync_directory(directory)

    def intend(self, step: str, action: str, node: str, undo: Undo, t: float) -> Owed:
        """Write down a deed before it is done; on disk when this returns."""
        self._last += 1
        owed = Owed(self._last, step, action, node, undo, t)
        self._write(_Record(intent=owed))
        self._owed[owed.id] = owed
        return owed

    def strike(self, owed: Owed, because: str) -> None:
        """The undo of ``owed`` is proven."""
        self._write(_Record(struck=owed.id, because=because))
        self._owed.pop(owed.id, None)

    def owed(self) -> list[Owed]:
        """What has not been undone, the last deed first."""
        return sorted(self._owed.values(), key=lambda o: -o.id)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _write(self, record: _Record) -> None:
        self._file.write(msgspec.json.encode(record) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _read(path: Path) -> tuple[dict[int, Owed], int]:
    """Owed entries by id, and the last id. A last line without its end was never acted upon: it is cut off."""
    if not path.exists():
        return {}, 0
    data = path.read_bytes()
    whole, _, torn = data.rpartition(b"\n")
    if torn:
        os.truncate(path, len(data) - len(torn))
    owed: dict[int, Owed] = {}
    last = 0
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            record = msgspec.json.decode(line, type=_Record)
        except msgspec.MsgspecError as error:
            raise bad_input(f"{path}:{number}", f"the journal is damaged: {error}", "undo by hand") from error
        if record.intent:
            owed[record.intent.id] = record.intent
            last = max(last, record.intent.id)
        elif record.struck is not None:
            owed.pop(record.struck, None)
    return owed, last


def _sync_directory(directory: Path) -> None:
    """The file's name must survive a crash as well as its content."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
