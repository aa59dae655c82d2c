"""Scraper: reads metrics of one target once a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from chaos.cluster.errors import DNS, OTHER, TLS, KubeUnreachable
from chaos.cluster.observers.blind_windows import BlindWindowTracker
from chaos.cluster.observers.observer_thread import ObserverThread
from chaos.core.ports import Clock, Sink
from chaos.core.recording import EntryKind, RecordingEntry

PERIOD = 1.0  # seconds of cluster time
_MAX_LINE_LENGTH = 1000
_LOCAL_CAUSES = (TLS, DNS, OTHER)  # these are no finding about the target
_SCRAPE = "scrape"
ReadFunc = Callable[[], tuple[str, list[str]]]  # HTTP status and lines; raises KubeUnreachable


class Scraper:
    """One target in one thread, as a dead one is slow to answer. ``target`` is a node's name, or a URL."""

    def __init__(self, target: str, clock: Clock, read: ReadFunc) -> None:
        self._target, self._clock, self._read = target, clock, read
        self._blind_windows = BlindWindowTracker(f"metrics@{target}", clock, self.emit)
        self._sink: Sink | None = None
        self._last_good = 0.0
        self.has_scraped = False
        self.thread = ObserverThread(f"metrics of {target}", clock, self._run, self._on_crash)

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._last_good = self._clock.now()
        self.thread.start()

    def emit(self, entry: RecordingEntry) -> None:
        """Emit ``entry``, unless the scraper has been stopped."""
        if self._sink and not self.thread.is_stopping:
            self._sink(entry)

    def _on_crash(self, reason: str) -> None:
        self._blind_windows.open(_SCRAPE, self._last_good, reason)

    def _run(self) -> None:
        while not self.thread.is_stopping:
            self._scrape()
            self.has_scraped = True
            self.thread.pause(PERIOD)

    def _scrape(self) -> None:
        """One scrape. A failure on this side is a blind window, not a finding about the target."""
        began = self._clock.now()
        try:
            status, lines = self._read()
        except KubeUnreachable as error:
            if error.kind in _LOCAL_CAUSES:
                self._blind_windows.open(_SCRAPE, self._last_good, error.message)
                return
            status, lines = "unreachable", []
        self._last_good = began
        self._blind_windows.close(_SCRAPE)
        value = msgspec.Raw(msgspec.json.encode(lines))
        self.emit(RecordingEntry(self._clock.now(), EntryKind.METRICS, status, value, node=self._target))


class MetricsObserver:
    """Several scrapers as one observer."""

    name = "metrics"

    def __init__(self, scrapers: Sequence[Scraper]) -> None:
        self._scrapers = scrapers

    def start(self, sink: Sink) -> None:
        for scraper in self._scrapers:
            scraper.start(sink)

    def stop(self) -> None:
        for scraper in self._scrapers:
            scraper.thread.stop()

    def has_synced(self) -> bool:
        return all(scraper.has_scraped for scraper in self._scrapers)


def filter_metrics(body: bytes, prefixes: tuple[str, ...]) -> list[str]:
    """The lines ``name value`` that begin with one of ``prefixes``, sorted; over-long lines are left out."""
    lines = body.decode("utf-8", "replace").split("\n")
    return sorted(line.strip() for line in lines if line.startswith(prefixes) and len(line) <= _MAX_LINE_LENGTH)
