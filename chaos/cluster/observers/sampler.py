"""An observer that calls one function again and again: what observers of plug-ins need, and seldom more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from chaos.cluster.observers.base import ThreadedObserver
from chaos.core.ports import Clock, Sink
from chaos.core.recording import EntryKind, RecordingEntry


def sample_source(name: str) -> str:
    """The source of the samples of this name, for ``sources`` of an assertion."""
    return f"{EntryKind.SAMPLE}@{name}"


class Sampler(ThreadedObserver):
    """Records what ``read`` returns (JSON types) every ``period`` seconds; ``Timeline.samples(name)`` has them.

    While ``read`` raises, the samples are blind: an assertion with :func:`sample_source` among its sources is
    inconclusive, and the reason has the name and the error. The next sample that succeeds ends that.
    """

    def __init__(self, name: str, clock: Clock, period: float, read: Callable[[], Any]) -> None:
        super().__init__(name, sample_source(name), clock)
        self._period, self._read = period, read
        self._last_good = 0.0

    def start(self, sink: Sink) -> None:
        self._last_good = self._clock.now()
        super().start(sink)

    def final_sample(self) -> None:
        """One more sample, before the final judgement."""
        self._sample()

    def _blind_since(self) -> float:
        return self._last_good

    def _run(self) -> None:
        while not self._thread.is_stopping:
            self._sample()
            self._thread.pause(self._period)

    def _sample(self) -> None:
        began = self._clock.now()
        try:
            value = msgspec.Raw(msgspec.json.encode(self._read()))
        except Exception as error:  # noqa: BLE001 - a sample that fails is a blind window
            why = f"observer {self.name}: {type(error).__name__}: {error}"
            self._blind_windows.open(self.cause, self._last_good, why)
        else:
            self._blind_windows.close(self.cause)
            now = self._last_good = self._clock.now()
            self._emit(RecordingEntry(now, EntryKind.SAMPLE, self.name, value, since=began))
        self._has_synced = True
