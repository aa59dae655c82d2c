"""The journal: what was about to be done is on disk before it is done, with how to take it back.

JSON Lines, appended and fsynced. An entry is struck only when its undo is proven. While a process has the journal
open it is locked, so that nobody else undoes what is still going on; the lock ends with the process.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct

from chaos.model.action import Undo
from chaos.model.errors import NodefallError, Refused, bad_input
from chaos.model.redaction import redact_json

NAME = "journal.jsonl"


class PendingUndo(Struct, frozen=True):
    """One deed and its undo."""

    id: int
    step: str
    action: str
    node: str
    undo: Undo
    t: float


class _Record(Struct, frozen=True, omit_defaults=True):
    """One line: a deed about to be done, the proof that one was undone, or whether the cluster has a copy."""

    intent: PendingUndo | None = None
    undone: int | None = None
    because: str = ""
    replica: bool | None = None


class Journal:
    """Of one run. Not thread safe: the engine's main thread owns it. Every write raises NodefallError."""

    def __init__(self, directory: Path) -> None:
        """Raises Refused while another process has it open, or where it cannot be written; BadInput if damaged."""
        self.path = directory / NAME
        try:
            self._file = self.path.open("ab", buffering=0)
            try:
                self._lock()
                self._content = _read(self.path)
                _sync_directory(directory)
            except BaseException:
                self._file.close()
                raise
        except OSError as error:
            raise Refused(
                f"the journal {self.path} cannot be written: {error.strerror}", hint="nothing is done without a journal"
            ) from error

    def record_intent(self, step: str, action: str, node: str, undo: Undo, t: float) -> PendingUndo:
        """Write down a deed before it is done; on disk when this returns."""
        owed = PendingUndo(self._content.last_id + 1, step, action, node, undo, t)
        self._add(_Record(intent=owed))
        return owed

    def mark_undone(self, owed: PendingUndo, because: str) -> None:
        """The undo of ``owed`` is proven."""
        self._add(_Record(undone=owed.id, because=because))

    def pending(self) -> list[PendingUndo]:
        """What has not been undone, the last deed first."""
        return self._content.newest_first()

    @property
    def has_replica(self) -> bool:
        """Whether the cluster may have a copy."""
        return self._content.has_replica

    def record_replica(self, there: bool) -> None:
        """Write down that the cluster gets a copy, before it does; or that it has none any more."""
        if there != self.has_replica:
            self._add(_Record(replica=there))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                f"{self.path} is in use: its run, or an undo of it, is still going on",
                hint="let it end, or stop it with Ctrl-C or SIGTERM: it undoes what it did",
            ) from None

    def _add(self, record: _Record) -> None:
        self._write(record)
        self._content.add(record)

    def _write(self, record: _Record) -> None:
        """Append, whole or not at all: half a line would damage what comes after it."""
        data = redact_json(msgspec.json.encode(record)) + b"\n"
        size = os.fstat(self._file.fileno()).st_size
        try:
            written = self._file.write(data)
            self._file.write(data[written:])  # half of it was written only if the disk is full: the rest says why
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):  # a torn end is cut off by the next reader too
                os.ftruncate(self._file.fileno(), size)
            raise NodefallError(f"the journal {self.path} cannot be written: {error.strerror}") from error


def read_pending(directory: Path) -> list[PendingUndo]:
    """What a run owes, the last deed first. Changes nothing, so a run that goes on may be asked. Raises BadInput."""
    path = directory / NAME
    try:
        content = _parse(path, path.read_bytes().rpartition(b"\n")[0])
    except OSError as error:
        raise bad_input(str(path), f"cannot be read: {error.strerror}") from error
    return content.newest_first()


@dataclass
class _Content:
    """Owed entries by id, the last id, and whether the cluster may have a copy."""

    pending: dict[int, PendingUndo] = field(default_factory=dict)
    last_id: int = 0
    has_replica: bool = False

    def add(self, record: _Record) -> None:
        if record.intent:
            self.pending[record.intent.id] = record.intent
            self.last_id = max(self.last_id, record.intent.id)
        if record.undone is not None:
            self.pending.pop(record.undone, None)
        if record.replica is not None:
            self.has_replica = record.replica

    def newest_first(self) -> list[PendingUndo]:
        return sorted(self.pending.values(), key=lambda o: -o.id)


def _read(path: Path) -> _Content:
    """A last line without its end was never acted upon: it is cut off."""
    data = path.read_bytes()
    whole, _, torn = data.rpartition(b"\n")
    if torn:
        os.truncate(path, len(data) - len(torn))
    return _parse(path, whole)


def _parse(path: Path, whole: bytes) -> _Content:
    content = _Content()
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            record = msgspec.json.decode(line, type=_Record)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            hint = f"see what the whole lines of it say, and {path.parent}/plan.json, and undo that by hand"
            raise bad_input(f"{path}:{number}", f"the journal is damaged: {error}", hint) from error
        content.add(record)
    return content


def _sync_directory(directory: Path) -> None:
    """The file's name must survive a crash as well as its content."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
