"""Journal: every operation is on disk, with its undo, before it begins.

JSON Lines, appended and fsynced. An entry is marked undone only when its undo is proven. While a process has the
journal open it is locked, so that no other process undoes a run that is still going on; the lock ends with the process.

Of a damaged journal, what is intact is read; it is replaced by one that was rebuilt from other sources.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from msgspec import structs

from chaos.core.action import FactCheck, Undo, UndoState
from chaos.core.errors import NodefallError, Refused, bad_input
from chaos.core.files import private_opener, read_regular
from chaos.core.store.journal_format import (
    RECORD_ERRORS,
    AcceptedMachine,
    EntryKey,
    PendingUndo,
    Record,
    decode_record,
    encode_record,
    entry_key,
)
from chaos.core.text import shell_word

NAME = "journal.jsonl"


class Journal:
    """The journal of one run. Not thread-safe: the engine's main thread owns it. Every write raises NodefallError."""

    def __init__(self, directory: Path) -> None:
        """Raises Refused if another process has the journal open or it cannot be written; BadInput if damaged."""
        self.path = directory / NAME
        try:
            self._file = open(self.path, "ab", buffering=0, opener=private_opener)  # noqa: SIM115 - closed by close()
            try:
                lock_journal(self._file, self.path)
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
        self,
        step: str,
        action: str,
        node: str,
        undo: Undo,
        t: float,
        identity: tuple[FactCheck, ...] = (),
        state: UndoState | None = None,
    ) -> PendingUndo:
        """Record an operation before it begins; on disk when this returns."""
        return self.add_entry(PendingUndo(0, step, action, node, undo, t, identity, state))

    def add_entry(self, entry: PendingUndo) -> PendingUndo:
        """Record an operation from another copy of the journal under an ID of this journal. It is on disk when this
        returns.
        """
        entry = structs.replace(entry, id=self._content.last_id + 1)
        self._add(Record(intent=entry))
        return entry

    def mark_undone(self, pending: PendingUndo, because: str) -> None:
        """Record that the undo of ``pending`` is proven."""
        self._add(Record(undone=pending.id, because=because))

    def pending(self) -> list[PendingUndo]:
        """Operations that have not been undone, the last one first."""
        return self._content.newest_first()

    def has_recorded(self, key: EntryKey) -> bool:
        """Whether the operation is in this journal, pending or undone."""
        return key in self._content.recorded

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever recorded."""
        return not self._content.recorded and not self.has_replica

    @property
    def has_replica(self) -> bool:
        """Whether the cluster may have a replica."""
        return self._content.has_replica

    def record_replica(self, exists: bool) -> None:
        """Record that the cluster is about to get a replica, or no longer has one."""
        if exists != self.has_replica:
            self._add(Record(replica=exists))

    def accept_machine(self, accepted: AcceptedMachine) -> None:
        """Record that the entries of a node are about another machine from now on."""
        self._add(Record(accepted=accepted))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _add(self, record: Record) -> None:
        self._write(record)
        self._content.add(record)

    def _write(self, record: Record) -> None:
        """Append the whole record or nothing: half a line would damage the next one."""
        data = encode_record(record)
        size = os.fstat(self._file.fileno()).st_size
        try:
            written = self._file.write(data)
            self._file.write(data[written:])  # the first write is partial only if the disk is full: this one raises
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):  # the next reader truncates a partial line too
                os.ftruncate(self._file.fileno(), size)
            raise NodefallError(f"cannot write the journal {self.path}: {error.strerror}") from error


def lock_journal(file: IO[bytes], path: Path) -> None:
    """Lock an open journal until it is closed. Raises Refused if another process has it open."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused(
            f"{path} is in use: its run, or an undo of it, is still going on",
            hint="wait for its end, or stop it with Ctrl-C or SIGTERM: it undoes its effects",
        ) from None


def read_pending(directory: Path) -> list[PendingUndo]:
    """Pending undo of a run, the last operation first. Changes nothing, also while the run goes on. Raises BadInput."""
    return read_entries(directory)[0]


def read_entries(directory: Path) -> tuple[list[PendingUndo], frozenset[EntryKey]]:
    """Like :func:`read_pending`, with the entries that are undone."""
    state = read_state(directory)
    return state.pending, state.undone


@dataclass(frozen=True, slots=True)
class JournalState:
    """Pending undo, the last operation first; what is undone; and whether the cluster may have a replica."""

    pending: list[PendingUndo]
    undone: frozenset[EntryKey]
    has_replica: bool


def read_state(directory: Path) -> JournalState:
    """Read a journal. Changes nothing, even while the run is in progress. Raises BadInput."""
    path = directory / NAME
    try:
        content = _parse(path, read_regular(path).rpartition(b"\n")[0])
    except OSError as error:
        raise bad_input(str(path), f"cannot be read: {error.strerror}") from error
    pending = content.newest_first()
    return JournalState(pending, frozenset(content.recorded - set(map(entry_key, pending))), content.has_replica)


@dataclass
class _Content:
    """Pending entries by id, all that were recorded, the last id, and whether the cluster may have a replica."""

    pending: dict[int, PendingUndo] = field(default_factory=dict)
    recorded: set[EntryKey] = field(default_factory=set)
    last_id: int = 0
    has_replica: bool = False

    def add(self, record: Record) -> None:
        if record.intent:
            self.pending[record.intent.id] = record.intent
            self.recorded.add(entry_key(record.intent))
            self.last_id = max(self.last_id, record.intent.id)
        if record.undone is not None:
            self.pending.pop(record.undone, None)
        if record.replica is not None:
            self.has_replica = record.replica
        if record.accepted:
            self.pending = {number: record.accepted.apply(entry) for number, entry in self.pending.items()}

    def newest_first(self) -> list[PendingUndo]:
        return sorted(self.pending.values(), key=lambda pending: -pending.id)


def _read(path: Path) -> _Content:
    """Read the journal for writing. A last line without a newline was never acted upon: it is truncated."""
    data = read_regular(path)
    whole, _, partial = data.rpartition(b"\n")
    if partial:
        os.truncate(path, len(data) - len(partial))
    return _parse(path, whole)


def _parse(path: Path, whole: bytes) -> _Content:
    content = _Content()
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            record = decode_record(line)
        except RECORD_ERRORS as error:
            hint = f"run `nodefall undo {shell_word(path.parent)}`: it uses the copy in the cluster, or plan.json"
            raise bad_input(f"{path}:{number}", f"the journal is damaged: {error}", hint) from error
        content.add(record)
    return content


def _sync_directory(directory: Path) -> None:
    """Sync the directory: the file's name must survive a crash as well as its content."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_intact(directory: Path) -> list[PendingUndo]:
    """The operations of all lines that can be read, undone or not, in order. Raises NodefallError.

    A line that cannot be read may be the proof of any undo, so none counts as undone.
    """
    entries: list[PendingUndo] = []
    try:
        lines = read_regular(directory / NAME).splitlines()
    except OSError as error:
        raise NodefallError(f"cannot read the journal {directory / NAME}: {error.strerror}") from error
    for line in lines:
        try:
            record = decode_record(line)
        except RECORD_ERRORS:
            continue
        entries += [record.intent] if record.intent else []
        if record.accepted:
            entries = [record.accepted.apply(entry) for entry in entries]
    return entries


def replace_damaged(directory: Path, entries: Iterable[PendingUndo], *, has_replica: bool) -> Path:
    """Replace the journal by one of these entries at once; the path at which the damaged one is saved.

    Raises Refused while another process has the journal open, and NodefallError if it cannot be replaced.
    """
    path = directory / NAME
    renumbered = [structs.replace(entry, id=number) for number, entry in enumerate(entries, 1)]
    records = [Record(replica=has_replica), *(Record(intent=entry) for entry in renumbered)]
    new = path.with_suffix(".new")
    try:
        with open(path, "ab", opener=private_opener) as damaged:
            lock_journal(damaged, path)
            with open(new, "wb", opener=private_opener) as file:
                file.write(b"".join(map(encode_record, records)))
                file.flush()
                os.fsync(file.fileno())
            saved = _save(path)
            new.replace(path)
    except OSError as error:
        raise NodefallError(f"cannot replace the damaged journal {path}: {error.strerror}") from error
    return saved


def _save(path: Path) -> Path:
    """A second name of the damaged file."""
    for number in count(1):
        saved = path.with_suffix(f".damaged-{number}")
        try:
            saved.hardlink_to(path)
        except FileExistsError:
            continue
        return saved
    raise AssertionError
