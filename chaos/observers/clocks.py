"""The measured clock offsets of all sources, into the recording's ``meta``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from chaos.model.offset import OFFSETS, Offset
from chaos.model.ports import Clock, Sink
from chaos.model.recording import Line

Measured = Callable[[], Mapping[str, Offset]]  # by source


class ClockOffsets:
    """Others measure; at its last look it tells what they have found."""

    name = "clock offsets"

    def __init__(self, clock: Clock, measured: Sequence[Measured]) -> None:
        self._clock, self._measured = clock, measured
        self._sink: Sink | None = None

    def start(self, sink: Sink) -> None:
        self._sink = sink

    def stop(self) -> None:
        self._sink = None

    def synced(self) -> bool:
        return True

    def last_look(self) -> None:
        found = {source: offset for each in self._measured for source, offset in each().items()}
        if self._sink and found:
            self._sink(Line(self._clock.now(), "meta", "clocks", msgspec.Raw(msgspec.json.encode({OFFSETS: found}))))
