"""The measured clock offsets of all sources, recorded as a ``meta`` entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from chaos.core.clock_offset import CLOCK_OFFSETS, ClockOffset
from chaos.core.ports import Clock, Sink
from chaos.core.recording import EntryKind, RecordingEntry

OffsetFunc = Callable[[], Mapping[str, ClockOffset]]  # by source


class ClockOffsetObserver:
    """Records, in its final sample, the offsets that other observers have measured."""

    name = "clock offsets"

    def __init__(self, clock: Clock, sources: Sequence[OffsetFunc]) -> None:
        self._clock, self._sources = clock, sources
        self._sink: Sink | None = None

    def start(self, sink: Sink) -> None:
        self._sink = sink

    def stop(self) -> None:
        self._sink = None

    def has_synced(self) -> bool:
        return True

    def final_sample(self) -> None:
        """Record the offsets known so far."""
        offsets = {source: offset for measure in self._sources for source, offset in measure().items()}
        if self._sink and offsets:
            value = msgspec.Raw(msgspec.json.encode({CLOCK_OFFSETS: offsets}))
            self._sink(RecordingEntry(self._clock.now(), EntryKind.META, "clocks", value))
