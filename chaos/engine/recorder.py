"""Recorder: the one writer of a recording, and of the live timeline that the judge reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from chaos.core.plan import PlannedStep
from chaos.core.ports import Clock
from chaos.core.recording import FORMAT, ActionRecord, EntryKind, RecordingEntry, moved
from chaos.core.redaction import redact, redact_json
from chaos.core.timeline import Entry, Timeline

DecodeFunc = Callable[[RecordingEntry, int], Entry | None]
WriteFunc = Callable[[RecordingEntry], None]
MAX_BYTES, MAX_ENTRIES = 4 << 30, 5_000_000  # of all observations, as JSON: a run on 5,000 nodes has a tenth
_FLOOD = "flood"  # source of the blind window that covers every source
_OWN = (EntryKind.META, EntryKind.ACTION, EntryKind.BLIND, EntryKind.VERDICT)  # no one else can make many of them
_TIME_STEP = 1e-6  # seconds: about the smallest difference between two recorded times


class Recorder:
    """Records the entries of all observers and the engine, from any thread, in the order of their arrival.

    An entry is never earlier than the previous one. Observations after a phase of a step are later than that phase,
    although both may have the same time on a simulated clock. When ``write`` (of a RecordingWriter) fails, as disks
    do, the timeline continues, so that the run can still be judged and rolled back; ``failure`` is the error.
    ``on_entry`` is given each entry of the timeline immediately, and must neither wait nor raise.

    Any user who may create Events or pods can flood a run. At the limit the recorder drops observations, which makes
    every source blind from then on, and calls ``on_flood`` once, with the reason.
    """

    def __init__(
        self,
        decode: DecodeFunc,
        clock: Clock,
        write: WriteFunc | None = None,
        on_entry: Callable[[Entry], object] = lambda _: None,
    ) -> None:
        self._decode, self._clock, self._write, self._on_entry = decode, clock, write, on_entry
        self._timeline = Timeline()
        self._new: list[Entry] = []  # not in the timeline yet
        self._seq = 0
        self._bytes, self._is_full = 0, False
        self.on_flood: Callable[[str], object] = lambda _: None
        self._lock = threading.Lock()
        self._last_time = self._last_action_time = float("-inf")
        self.failure: OSError | None = None

    def emit(self, entry: RecordingEntry) -> None:
        """Record ``entry``. Secrets are redacted before recording."""
        data = bytes(entry.object)
        redacted = redact_json(data)
        note = redact(entry.note) if isinstance(entry.note, str) else entry.note
        if redacted is not data or note != entry.note:  # what was decoded has the secret, too
            raw = msgspec.Raw(redacted)
            entry = RecordingEntry(entry.t, entry.kind, entry.type, raw, entry.node, note, entry.since)
        with self._lock:
            if self._has_room(entry):
                self._add(entry)

    def _has_room(self, entry: RecordingEntry) -> bool:
        self._bytes += memoryview(entry.object).nbytes
        if entry.kind in _OWN or (self._bytes <= MAX_BYTES and self._seq < MAX_ENTRIES):
            return True
        if not self._is_full:
            self._is_full = True
            reason = f"the cluster sends too much: {self._seq} observations, {self._bytes >> 20} MiB"
            window = {"from": entry.t, "to": None, "reason": reason}
            self._add(RecordingEntry(entry.t, EntryKind.BLIND, _FLOOD, encode_raw(window)))
            self.on_flood(reason)
        return False

    def _add(self, entry: RecordingEntry) -> None:
        entry = self._in_order(entry)
        decoded = self._decode(entry, self._seq)
        if decoded is not None:
            self._new.append(decoded)
            self._on_entry(decoded)
            self._seq += 1
        self._save(entry)

    def _in_order(self, entry: RecordingEntry) -> RecordingEntry:
        is_action = entry.kind == EntryKind.ACTION
        t = max(entry.t, self._last_time if is_action else max(self._last_time, self._last_action_time + _TIME_STEP))
        self._last_time = t
        if is_action:
            self._last_action_time = t
        return entry if t == entry.t else moved(entry, t)

    def timeline(self) -> Timeline:
        """The timeline so far. Only the next call changes it, so call it from one thread; observers never wait."""
        with self._lock:
            new, self._new = self._new, []
            end = self._last_time = max(self._last_time, self._clock.now())
        for entry in new:
            self._timeline.add(entry)
        self._timeline.end = max(self._timeline.end, end)
        return self._timeline

    def _save(self, entry: RecordingEntry) -> None:
        if self._write is None or self.failure is not None:
            return
        try:
            self._write(entry)
        except OSError as error:
            self.failure = error


def encode_raw(value: Any) -> msgspec.Raw:
    """Encode ``value`` as the object of a recording entry."""
    return msgspec.Raw(msgspec.json.encode(value))


def action_entry(t: float, step: PlannedStep, phase: str, **more: Any) -> RecordingEntry:
    """One phase of a step on a node: begin, returned, proved, undo (its start) or undone."""
    record = ActionRecord(step=step.step, phase=phase, params=step.params, **more)
    return RecordingEntry(t, EntryKind.ACTION, step.action, encode_raw(record), step.node)


def fact_entry(t: float, node: str, fact: str, value: Any) -> RecordingEntry:
    """A fact of a host that the engine has read."""
    return RecordingEntry(t, EntryKind.HOST, fact, encode_raw(value), node)


def meta_entry(t: float, meta: Mapping[str, Any]) -> RecordingEntry:
    """The first entry of a recording."""
    return RecordingEntry(t, EntryKind.META, "recording", encode_raw({"format": FORMAT, **meta}))
