"""How often a rehearsal is judged: no one watches, so it is enough when something may have been decided."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.app.run_setup import LiveJudge
from chaos.core.ports import Clock
from chaos.core.result import RunResult

PERIOD = 5.0  # seconds of cluster time by which a proof, or the end of the observation, may be noticed later


@dataclass
class SparseJudge:
    """Judges all after each phase of a step and each moment that decides, and every ``PERIOD``.

    The abort conditions are judged at every tick.
    """

    live: LiveJudge
    clock: Clock
    _judged_at: float = 0.0
    _actions: int = 0
    _last: RunResult | None = field(default=None)

    def __call__(self, live: bool) -> RunResult:
        """As :meth:`LiveJudge.judge`; of a live run it may be the judgement of some ticks ago."""
        now = self.clock.now()
        actions = len(self.live.recorder.timeline().actions)
        if live and self._last and not self._is_due(now, actions) and not self.live.violated_conditions():
            return self._last
        self._judged_at, self._actions, self._last = now, actions, self.live.judge(live)
        return self._last

    def _is_due(self, now: float, actions: int) -> bool:
        if actions != self._actions or now >= self._judged_at + PERIOD:
            return True
        return any(self._judged_at < moment <= now for moment in self.live.deadlines)
