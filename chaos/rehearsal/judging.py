"""How often a rehearsal is judged: no one watches, so it is enough when something may have been decided."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.core.ports import Clock
from chaos.core.result import RunResult
from chaos.engine.live_judge import LiveJudge

PERIOD = 5.0  # seconds of cluster time by which a proof, or the end of the observation, may be noticed later


@dataclass
class SparseJudge(LiveJudge):
    """Judges all after each phase of a step and each moment that decides, and every ``PERIOD`` of ``clock``.

    The abort conditions are judged at every tick.
    """

    clock: Clock = field(kw_only=True)
    _judged_at: float = 0.0
    _actions: int = 0
    _last: RunResult | None = None

    def judge(self, live: bool) -> RunResult:
        """As :meth:`LiveJudge.judge`; of a live run it may be the judgement of some ticks ago."""
        now = self.clock.now()
        actions = len(self.recorder.timeline().actions)
        if live and self._last and not self._is_due(now, actions) and not self.violated_conditions():
            return self._last
        self._judged_at, self._actions, self._last = now, actions, super().judge(live)
        return self._last

    def _is_due(self, now: float, actions: int) -> bool:
        if actions != self._actions or now >= self._judged_at + PERIOD:
            return True
        return any(self._judged_at < moment <= now for moment in self.deadlines)
