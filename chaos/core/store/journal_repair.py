"""A damaged journal: what is intact of it, and its replacement by one that was rebuilt from other sources."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from msgspec import structs

from chaos.core.errors import NodefallError
from chaos.core.store.journal import NAME, lock_journal
from chaos.core.store.journal_format import RECORD_ERRORS, PendingUndo, Record, decode_record, encode_record
from chaos.core.store.private_files import private_opener


def read_intact(directory: Path) -> list[PendingUndo]:
    """The operations of all lines that can be read, undone or not, in order. Raises NodefallError.

    A line that cannot be read may be the proof of any undo, so none counts as undone.
    """
    entries: list[PendingUndo] = []
    try:
        lines = (directory / NAME).read_bytes().splitlines()
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
