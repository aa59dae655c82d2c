"""Reading metrics once a second: what comes of an answer, and of none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from chaos.model.ports import Clock, Sink
from chaos.model.recording import Line
from chaos.observers.api import KubeUnreachable
from chaos.observers.sight import Sight
from chaos.observers.unreachable import DNS, OTHER, TLS
from chaos.observers.worker import Worker

PERIOD = 1.0  # seconds of cluster time
_LONGEST = 1000  # characters of a line
_OURS = (TLS, DNS, OTHER)  # causes that say nothing about who was asked
_SCRAPE = "scrape"
Read = Callable[[], tuple[str, list[str]]]  # HTTP status and lines; raises KubeUnreachable


class Scraper:
    """One source, in a thread of its own: what is dead answers late. ``about``: a node's name, or a URL."""

    def __init__(self, about: str, clock: Clock, read: Read) -> None:
        self._about, self._clock, self._read = about, clock, read
        self._sight = Sight(f"metrics@{about}", clock, self.emit)
        self._sink: Sink | None = None
        self._good = 0.0
        self.synced = False
        self.worker = Worker(f"metrics of {about}", clock, self._run, self._crashed)

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._good = self._clock.now()
        self.worker.start()

    def emit(self, line: Line) -> None:
        """Tell it, unless nobody listens any more."""
        if self._sink and not self.worker.stopping:
            self._sink(line)

    def _crashed(self, reason: str) -> None:
        self._sight.lost(_SCRAPE, self._good, reason)

    def _run(self) -> None:
        while not self.worker.stopping:
            self._look()
            self.synced = True
            self.worker.pause(PERIOD)

    def _look(self) -> None:
        """One scrape; a failure of our own side is a blind window, not a fact about who was asked."""
        began = self._clock.now()
        try:
            status, lines = self._read()
        except KubeUnreachable as error:
            if error.kind in _OURS:
                self._sight.lost(_SCRAPE, self._good, error.message)
                return
            status, lines = "unreachable", []
        self._good = began
        self._sight.regained(_SCRAPE)
        self.emit(Line(self._clock.now(), "metrics", status, msgspec.Raw(msgspec.json.encode(lines)), node=self._about))


class Scrapers:
    """An observer made of some."""

    name = "metrics"

    def __init__(self, scrapers: Sequence[Scraper]) -> None:
        self._scrapers = scrapers

    def start(self, sink: Sink) -> None:
        for scraper in self._scrapers:
            scraper.start(sink)

    def stop(self) -> None:
        for scraper in self._scrapers:
            scraper.worker.stop()

    def synced(self) -> bool:
        return all(scraper.synced for scraper in self._scrapers)


def kept(body: bytes, names: tuple[str, ...]) -> list[str]:
    """The lines ``name value`` that begin with one of ``names``, sorted; longer ones are none of these."""
    lines = body.decode("utf-8", "replace").split("\n")
    return sorted(line.strip() for line in lines if line.startswith(names) and len(line) <= _LONGEST)
