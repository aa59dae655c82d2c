"""Reading metrics once a second: what comes of an answer, and of none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from chaos.kube.errors import DNS, OTHER, TLS, KubeUnreachable
from chaos.model.ports import Clock, Sink
from chaos.model.recording import RecordingEntry
from chaos.observers.blind_windows import BlindWindowTracker
from chaos.observers.observer_thread import ObserverThread

PERIOD = 1.0  # seconds of cluster time
_MAX_LINE_LENGTH = 1000  # characters of a line
_LOCAL_CAUSES = (TLS, DNS, OTHER)  # causes that say nothing about who was asked
_SCRAPE = "scrape"
ReadFunc = Callable[[], tuple[str, list[str]]]  # HTTP status and lines; raises KubeUnreachable


class Scraper:
    """One source, in a thread of its own: what is dead answers late. ``about``: a node's name, or a URL."""

    def __init__(self, about: str, clock: Clock, read: ReadFunc) -> None:
        self._target, self._clock, self._read = about, clock, read
        self._blind_windows = BlindWindowTracker(f"metrics@{about}", clock, self.emit)
        self._sink: Sink | None = None
        self._last_good = 0.0
        self.has_scraped = False
        self.thread = ObserverThread(f"metrics of {about}", clock, self._run, self._on_crash)

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._last_good = self._clock.now()
        self.thread.start()

    def emit(self, line: RecordingEntry) -> None:
        """Tell it, unless nobody listens any more."""
        if self._sink and not self.thread.is_stopping:
            self._sink(line)

    def _on_crash(self, reason: str) -> None:
        self._blind_windows.open(_SCRAPE, self._last_good, reason)

    def _run(self) -> None:
        while not self.thread.is_stopping:
            self._scrape()
            self.has_scraped = True
            self.thread.pause(PERIOD)

    def _scrape(self) -> None:
        """One scrape; a failure of our own side is a blind window, not a fact about who was asked."""
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
        self.emit(
            RecordingEntry(
                self._clock.now(), "metrics", status, msgspec.Raw(msgspec.json.encode(lines)), node=self._target
            )
        )


class MetricsObserver:
    """An observer made of some."""

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


def filter_metrics(body: bytes, names: tuple[str, ...]) -> list[str]:
    """The lines ``name value`` that begin with one of ``names``, sorted; longer ones are none of these."""
    lines = body.decode("utf-8", "replace").split("\n")
    return sorted(line.strip() for line in lines if line.startswith(names) and len(line) <= _MAX_LINE_LENGTH)
