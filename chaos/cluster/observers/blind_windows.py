"""Blind windows of one source: opened by the first cause of blindness, closed when no cause is left."""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from chaos.core.ports import Clock, Sink
from chaos.core.recording import EntryKind, RecordingEntry

_MAX_REASONS = 3  # of one window: retries repeat themselves


class BlindWindowTracker:
    """Emits a ``blind`` entry when the first cause appears, and again, with its end, when the last one is gone."""

    def __init__(self, source: str, clock: Clock, sink: Sink) -> None:
        self._source, self._clock, self._sink = source, clock, sink
        self._lock = threading.Lock()
        self._causes: set[str] = set()
        self._since = 0.0
        self._reasons: list[str] = []

    def is_open(self, cause: str) -> bool:
        """True while ``cause`` lasts."""
        with self._lock:
            return cause in self._causes

    def open(self, cause: str, since: float, reason: str) -> None:
        """Record that nothing was observed from ``since`` on; the end of the window has later reasons too."""
        with self._lock:
            is_first = not self._causes
            self._causes.add(cause)
            if is_first:
                self._since, self._reasons = since, [reason]
                self._emit(None)
            elif reason not in self._reasons and len(self._reasons) < _MAX_REASONS:
                self._reasons.append(reason)

    def close(self, cause: str, changed: list[str] | None = None) -> None:
        """Record that ``cause`` is gone; ``changed``: see :class:`chaos.core.recording.BlindWindow`."""
        with self._lock:
            if cause in self._causes:
                self._causes.discard(cause)
                if not self._causes:
                    self._emit(self._clock.now(), changed)

    def _emit(self, end: float | None, changed: list[str] | None = None) -> None:
        window: dict[str, Any] = {"from": self._since, "to": end, "reason": "; ".join(self._reasons)}
        if changed is not None:
            window["changed"] = changed
        entry = msgspec.Raw(msgspec.json.encode(window))
        self._sink(RecordingEntry(self._clock.now(), EntryKind.BLIND, self._source, entry))
