"""Progress that takes its time: a simulated run is over before a person has seen anything of it."""

from __future__ import annotations

from chaos.cli.run.progress import BestEffortProgress
from chaos.core.ports import Clock
from chaos.core.result import Judgement
from chaos.core.verdict import Verdict


class PacedProgress:
    """Passes everything on, and lets at most ``pace`` seconds of the run pass in a second of ``clock``.

    Implements ``chaos.core.ports.Progress`` and ``JudgementDisplay``.
    """

    def __init__(self, progress: BestEffortProgress, clock: Clock, pace: float) -> None:
        self._progress, self._clock, self._pace = progress, clock, pace
        self._first: float | None = None  # by how much the first tick's time at this pace was before the clock

    def phase(self, name: str) -> None:
        self._progress.phase(name)

    def step(self, name: str, node: str, what: str) -> None:
        self._progress.step(name, node, what)

    def verdict(self, verdict: Verdict) -> None:
        self._progress.verdict(verdict)

    def note(self, text: str) -> None:
        self._progress.note(text)

    def judged(self, judgement: Judgement) -> None:
        self._progress.judged(judgement)

    def tick(self, now: float) -> None:
        self._progress.tick(now)
        ahead = now / self._pace - self._clock.now()
        if self._first is None:
            self._first = ahead
        if ahead > self._first:
            self._clock.sleep(ahead - self._first)
