"""Shared parts of observers: threads, whose crash is logged and becomes a blind window; blind windows; backoff."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from chaos.core.errors import NodefallError
from chaos.core.ports import Clock, Sink
from chaos.core.recording import EntryKind, RecordingEntry

_MIN_PAUSE = 0.05  # wall seconds to wait when the clock was woken and does not sleep
_log = logging.getLogger(__name__)
_MAX_REASONS = 3  # of one window: retries repeat themselves
# Seconds of cluster time.
SHORT_WATCH = 1.0  # a watch that ends sooner may be part of a hot loop
_RESET_AFTER = 5.0  # a watch that lasted this long resets the failure count
_BASE_DELAY, _MAX_DELAY = 0.25, 5.0


class ObserverThread:
    """A daemon thread that runs ``body`` once. ``on_crash`` is called with the reason if an exception ends it."""

    def __init__(self, name: str, clock: Clock, body: Callable[[], None], on_crash: Callable[[str], None]) -> None:
        self._clock, self._body, self._on_crash = clock, body, on_crash
        self._stop = threading.Event()
        self._name, self._thread = name, clock.threads.thread(self._run, name)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Request the thread to end. Does not wait: it may sleep on a clock that stands still meanwhile."""
        self._stop.set()

    def pause(self, seconds: float) -> None:
        """Sleep ``seconds`` of cluster time, or less when stopping; never returns immediately in a loop."""
        if not self.is_stopping and not self._clock.sleep(seconds):
            self._stop.wait(_MIN_PAUSE)

    def _run(self) -> None:
        try:
            self._body()
        except Exception as error:  # noqa: BLE001 - the crash of an observer is a blind window
            if self.is_stopping:
                _log.debug("thread %s ended while stopping", self._name, exc_info=True)
                return
            _log.exception("thread %s crashed", self._name)
            with suppress(NodefallError):  # the clock is gone too, which ends the run anyway
                self._on_crash(f"{self._name} crashed: {type(error).__name__}: {error}")


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


class Backoff:
    """Exponential backoff with jitter. The first retry after a good watch is immediate."""

    def __init__(self) -> None:
        self._failures = 0
        self._short_watches = 0
        self._jitter = random.Random()  # noqa: S311 - spreads retries

    def record_failure(self, lifetime: float) -> float:
        """Count a watch that broke after ``lifetime`` seconds (0: it never opened); returns the delay in seconds."""
        if lifetime >= _RESET_AFTER:
            self._failures = 0
        self._failures += 1
        if self._failures == 1:
            return 0.0
        delay = min(_MAX_DELAY, _BASE_DELAY * 2.0 ** min(self._failures - 2, 10))
        return float(delay * self._jitter.uniform(0.5, 1.0))

    def record_end(self, lifetime: float) -> bool:
        """Count a watch that ended regularly; False if the server ends watches immediately."""
        self._short_watches = self._short_watches + 1 if lifetime < SHORT_WATCH else 0
        return self._short_watches < 2


class ThreadedObserver:
    """An observer with a separate thread. Its crash is a cause of blindness of ``source``.

    Subclasses have ``_run``, the body of the thread, and ``_blind_since``: from when on nothing is known if it crashes.
    """

    cause = "run"  # of blindness

    def __init__(self, name: str, source: str, clock: Clock) -> None:
        self.name, self._clock = name, clock
        self._sink: Sink | None = None
        self._has_synced = False
        self._blind_windows = BlindWindowTracker(source, clock, self._emit)
        self._thread = ObserverThread(name, clock, self._run, self._on_crash)

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def has_synced(self) -> bool:
        return self._has_synced

    def _emit(self, entry: RecordingEntry) -> None:
        if self._sink and not self._thread.is_stopping:
            self._sink(entry)

    def _on_crash(self, reason: str) -> None:
        self._blind_windows.open(self.cause, self._blind_since(), reason)

    def _blind_since(self) -> float:
        return self._clock.now()

    def _run(self) -> None:
        raise NotImplementedError


class ObserverGroup:
    """Several observers as one."""

    def __init__(self, name: str, observers: Sequence[ThreadedObserver]) -> None:
        self.name, self.observers = name, observers

    def start(self, sink: Sink) -> None:
        for each in self.observers:
            each.start(sink)

    def stop(self) -> None:
        for each in self.observers:
            each.stop()

    def has_synced(self) -> bool:
        return all(each.has_synced() for each in self.observers)
