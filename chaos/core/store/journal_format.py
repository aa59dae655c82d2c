"""Records of a journal: one JSON object a line."""

from __future__ import annotations

import msgspec
from msgspec import Struct, structs

from chaos.core.action import FactCheck, Undo, UndoState
from chaos.core.errors import NodefallError
from chaos.core.field_types import Moment
from chaos.core.redaction import redact_json
from chaos.core.text import on_node

_FORMER_KEYS = {"struck", "mirrored"}  # of a record that 0.1.0 wrote
RECORD_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # what decoding raises


class PendingUndo(Struct, frozen=True):
    """One operation and its undo. ``t`` is when the operation was about to begin.

    ``identity`` are checks that the host and the power control are still those of the plan, ``state`` is what the
    action computes ``undo`` from; 0.1.0 wrote neither.
    """

    id: int
    step: str
    action: str
    node: str
    undo: Undo
    t: Moment
    identity: tuple[FactCheck, ...] = ()
    state: UndoState | None = None


EntryKey = tuple[str, str, str, float]  # step, action, node, time: the same in a copy, whose IDs may differ


def entry_key(pending: PendingUndo) -> EntryKey:
    """What identifies an operation of a run in every copy of its journal."""
    return pending.step, pending.action, pending.node, pending.t


class AcceptedMachine(Struct, frozen=True):
    """A person accepts what is in the place of a node as its machine: ``identity`` replaces the checks of its entries.

    ``was`` are the checks until then, ``by`` is the user and host who accepted it.
    """

    node: str
    identity: tuple[FactCheck, ...]
    was: tuple[FactCheck, ...]
    t: Moment
    by: str

    def apply(self, entry: PendingUndo) -> PendingUndo:
        """The entry with the accepted machine's values of what it was checked by; a fact without one is dropped."""
        if entry.node != self.node:
            return entry
        accepted, replaced = {check.fact: check for check in self.identity}, {check.fact for check in self.was}
        present = (accepted.get(check.fact, check) for check in entry.identity)
        return structs.replace(
            entry, identity=tuple(check for check in present if check.fact in accepted or check.fact not in replaced)
        )


class Record(Struct, frozen=True, omit_defaults=True):
    """One line: an operation about to begin, the proof of an undo, whether there is a replica, or an acceptance."""

    intent: PendingUndo | None = None
    undone: int | None = None  # id of the entry
    because: str = ""
    replica: bool | None = None
    accepted: AcceptedMachine | None = None


def encode_record(record: Record) -> bytes:
    """The line of a record. Raises NodefallError for an operation with a secret: its redacted undo is another one."""
    data = msgspec.json.encode(record)
    redacted = redact_json(data)
    if record.intent and redacted != data:
        entry = record.intent
        raise NodefallError(
            f"cannot record the undo of {on_node(entry.step, entry.node)}: it contains a secret, never written",
            hint="take the secret out of the step; if a password is a common word or a name, change the password",
        )
    return redacted + b"\n"


def decode_record(line: bytes) -> Record:
    """The record of a line. Raises RECORD_ERRORS."""
    value = msgspec.json.decode(line)
    if isinstance(value, dict) and value.keys() & _FORMER_KEYS:
        raise msgspec.ValidationError("nodefall 0.1.0 wrote it: undo its run with nodefall 0.2.0")
    return msgspec.convert(value, Record)
