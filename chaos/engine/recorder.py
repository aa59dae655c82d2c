"""The one writer of a live timeline and its recording."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from chaos.model.ports import Clock
from chaos.model.recording import RecordingEntry
from chaos.model.redaction import redact_json
from chaos.model.timeline import Entry, Timeline

DecodeFunc = Callable[[RecordingEntry, int], Entry | None]
WriteFunc = Callable[[RecordingEntry], None]
_TIME_STEP = 1e-6  # seconds: about the least by which recorded times can differ


class Recorder:
    """Takes lines of all observers and the engine, from any thread, in the order in which they come.

    No line gets a time before the last one's, nor what is seen after a phase of a step the time of that phase: on a
    simulated cluster's clock both may fall into one instant. ``write`` (of a RecordingWriter) may fail, as disks do:
    the timeline goes on, so that the run can still be judged and rolled back, and ``failure`` says what was lost.
    """

    def __init__(self, decode: DecodeFunc, clock: Clock, write: WriteFunc | None = None) -> None:
        self._decode, self._clock, self._write = decode, clock, write
        self._timeline = Timeline()
        self._lock = threading.Lock()
        self._last_time = self._last_action_time = float("-inf")
        self.failure: OSError | None = None

    def emit(self, line: RecordingEntry) -> None:
        """The sink. What anybody said of a secret goes no further."""
        kept = redact_json(bytes(line.object))
        if kept != line.object:
            line = msgspec.structs.replace(line, object=msgspec.Raw(kept))
        with self._lock:
            line = self._in_order(line)
            entry = self._decode(line, self._timeline.next_seq())
            if entry is not None:
                self._timeline.add(entry)
            self._save(line)

    def _in_order(self, line: RecordingEntry) -> RecordingEntry:
        action = line.kind == "action"
        t = max(line.t, self._last_time if action else max(self._last_time, self._last_action_time + _TIME_STEP))
        self._last_time = t
        if action:
            self._last_action_time = t
        return line if t == line.t else msgspec.structs.replace(line, t=t)

    @contextmanager
    def lock_timeline(self) -> Iterator[Timeline]:
        """The timeline up to now, to look at while nothing is added; be quick."""
        with self._lock:
            self._last_time = max(self._last_time, self._clock.now())
            self._timeline.end = max(self._timeline.end, self._last_time)
            yield self._timeline

    def snapshot(self) -> Timeline:
        """A timeline of its own, up to now, to judge at leisure."""
        with self.lock_timeline() as timeline:
            entries, end = list(timeline.entries), timeline.end
        copy = Timeline()
        for entry in entries:
            copy.add(entry)
        copy.end = max(copy.end, end)
        return copy

    def _save(self, line: RecordingEntry) -> None:
        if self._write is None or self.failure is not None:
            return
        try:
            self._write(line)
        except OSError as error:
            self.failure = error
