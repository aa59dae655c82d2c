"""The measured clock offsets of all sources, into the recording's ``meta``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from chaos.model.clock_offset import CLOCK_OFFSETS, ClockOffset
from chaos.model.ports import Clock, Sink
from chaos.model.recording import RecordingEntry

OffsetSource = Callable[[], Mapping[str, ClockOffset]]  # by source


class ClockOffsetObserver:
    """Others measure; at its last look it tells what they have found."""

    name = "clock offsets"

    def __init__(self, clock: Clock, measured: Sequence[OffsetSource]) -> None:
        self._clock, self._sources = clock, measured
        self._sink: Sink | None = None

    def start(self, sink: Sink) -> None:
        self._sink = sink

    def stop(self) -> None:
        self._sink = None

    def has_synced(self) -> bool:
        return True

    def final_sample(self) -> None:
        found = {source: offset for each in self._sources for source, offset in each().items()}
        if self._sink and found:
            self._sink(
                RecordingEntry(
                    self._clock.now(), "meta", "clocks", msgspec.Raw(msgspec.json.encode({CLOCK_OFFSETS: found}))
                )
            )
