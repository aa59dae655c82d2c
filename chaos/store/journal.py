"""Journal: every operation is on disk, with its undo, before it begins.

JSON Lines, appended and fsynced. An entry is marked undone only when its undo is proven. While a process has the
journal open it is locked, so that no other process undoes a run that is still going on; the lock ends with the process.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import Struct

from chaos.model.action import FactCheck, Undo
from chaos.model.errors import NodefallError, Refused, bad_input
from chaos.model.legacy import upgrade_undo
from chaos.model.redaction import redact_json
from chaos.store.private_files import private_opener

NAME = "journal.jsonl"
# Keys of a record that 0.1.0 wrote; to be removed in the version after the next.
_FORMER_KEYS = {"struck": "undone", "mirrored": "replica"}


class PendingUndo(Struct, frozen=True):
    """One operation and its undo. ``t`` is when the operation was about to begin.

    ``identity`` are checks that the host and the power control are still those of the plan; 0.1.0 wrote none.
    """

    id: int
    step: str
    action: str
    node: str
    undo: Undo
    t: float
    identity: tuple[FactCheck, ...] = ()


EntryKey = tuple[str, str, str, float]  # step, action, node, time: the same in a copy, whose IDs may differ


def entry_key(pending: PendingUndo) -> EntryKey:
    """What identifies an operation of a run in every copy of its journal."""
    return pending.step, pending.action, pending.node, pending.t


class _Record(Struct, frozen=True, omit_defaults=True):
    """One line: an operation about to begin, the proof of an undo, or whether the cluster has a replica."""

    intent: PendingUndo | None = None
    undone: int | None = None  # id of the entry
    because: str = ""
    replica: bool | None = None


class Journal:
    """The journal of one run. Not thread-safe: the engine's main thread owns it. Every write raises NodefallError."""

    def __init__(self, directory: Path) -> None:
        """Raises Refused if another process has the journal open or it cannot be written; BadInput if damaged."""
        self.path = directory / NAME
        try:
            self._file = open(self.path, "ab", buffering=0, opener=private_opener)  # noqa: SIM115 - closed by close()
            try:
                self._lock()
                self._content = _read(self.path)
                _sync_directory(directory)
            except BaseException:
                self._file.close()
                raise
        except OSError as error:
            raise Refused(
                f"cannot write the journal {self.path}: {error.strerror}",
                hint="make it writable; nothing is done without a journal",
            ) from error

    def record_intent(
        self, step: str, action: str, node: str, undo: Undo, t: float, identity: tuple[FactCheck, ...] = ()
    ) -> PendingUndo:
        """Record an operation before it begins; on disk when this returns."""
        pending = PendingUndo(self._content.last_id + 1, step, action, node, undo, t, identity)
        self._add(_Record(intent=pending))
        return pending

    def mark_undone(self, pending: PendingUndo, because: str) -> None:
        """Record that the undo of ``pending`` is proven."""
        self._add(_Record(undone=pending.id, because=because))

    def pending(self) -> list[PendingUndo]:
        """Operations that have not been undone, the last one first."""
        return self._content.newest_first()

    def has_recorded(self, entry: PendingUndo) -> bool:
        """Whether the operation is in this journal, pending or undone."""
        return entry_key(entry) in self._content.recorded

    @property
    def has_replica(self) -> bool:
        """Whether the cluster may have a replica."""
        return self._content.has_replica

    def record_replica(self, exists: bool) -> None:
        """Record that the cluster is about to get a replica, or no longer has one."""
        if exists != self.has_replica:
            self._add(_Record(replica=exists))

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
                hint="wait for its end, or stop it with Ctrl-C or SIGTERM: it undoes its effects",
            ) from None

    def _add(self, record: _Record) -> None:
        self._write(record)
        self._content.add(record)

    def _write(self, record: _Record) -> None:
        """Append the whole record or nothing: half a line would damage the next one."""
        data = redact_json(msgspec.json.encode(record)) + b"\n"
        size = os.fstat(self._file.fileno()).st_size
        try:
            written = self._file.write(data)
            self._file.write(data[written:])  # the first write is partial only if the disk is full: this one raises
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):  # the next reader truncates a partial line too
                os.ftruncate(self._file.fileno(), size)
            raise NodefallError(f"cannot write the journal {self.path}: {error.strerror}") from error


def read_pending(directory: Path) -> list[PendingUndo]:
    """Pending undo of a run, the last operation first. Changes nothing, also while the run goes on. Raises BadInput."""
    path = directory / NAME
    try:
        content = _parse(path, path.read_bytes().rpartition(b"\n")[0])
    except OSError as error:
        raise bad_input(str(path), f"cannot be read: {error.strerror}") from error
    return content.newest_first()


def decode_pending(value: Any) -> PendingUndo:
    """An entry, from its JSON value in either version's words. Raises msgspec.ValidationError."""
    if isinstance(value, dict) and "undo" in value:
        value = value | {"undo": upgrade_undo(value["undo"])}
    return msgspec.convert(value, PendingUndo)


@dataclass
class _Content:
    """Pending entries by id, all that were recorded, the last id, and whether the cluster may have a replica."""

    pending: dict[int, PendingUndo] = field(default_factory=dict)
    recorded: set[EntryKey] = field(default_factory=set)
    last_id: int = 0
    has_replica: bool = False

    def add(self, record: _Record) -> None:
        if record.intent:
            self.pending[record.intent.id] = record.intent
            self.recorded.add(entry_key(record.intent))
            self.last_id = max(self.last_id, record.intent.id)
        if record.undone is not None:
            self.pending.pop(record.undone, None)
        if record.replica is not None:
            self.has_replica = record.replica

    def newest_first(self) -> list[PendingUndo]:
        return sorted(self.pending.values(), key=lambda pending: -pending.id)


def _read(path: Path) -> _Content:
    """Read the journal for writing. A last line without a newline was never acted upon: it is truncated."""
    data = path.read_bytes()
    whole, _, partial = data.rpartition(b"\n")
    if partial:
        os.truncate(path, len(data) - len(partial))
    return _parse(path, whole)


def _parse(path: Path, whole: bytes) -> _Content:
    content = _Content()
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            record = _decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            hint = f"read its intact lines and {path.parent}/plan.json, and undo the operations by hand"
            raise bad_input(f"{path}:{number}", f"the journal is damaged: {error}", hint) from error
        content.add(record)
    return content


def _decode(line: bytes) -> _Record:
    value = msgspec.json.decode(line)
    if not isinstance(value, dict):
        return msgspec.convert(value, _Record)  # raises
    value = {_FORMER_KEYS.get(key, key): item for key, item in value.items()}
    if value.get("intent") is not None:
        value["intent"] = decode_pending(value["intent"])
    return msgspec.convert(value, _Record)


def _sync_directory(directory: Path) -> None:
    """Sync the directory: the file's name must survive a crash as well as its content."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
