"""CPU time of the kubelet: with a quota its work waits in a queue, and is done at the quota's rate.

The costs are assumptions of the order of a small node; what follows from them is only that work is late, and that a
loop begins again when its work is done, so that the queue is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chaos.lab.sim.clock import SimClock, Timer

_IDLE = 0.03  # CPU seconds a second for housekeeping and the relist of containers
_TASK = 0.02  # CPU seconds for one piece of work: a request, a sync
_FAIR = 0.5  # of a quota that housekeeping alone would use up: left for work besides it


class KubeletCpu:
    """``share`` of one CPU, None without a quota."""

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self.share: float | None = None
        self.on_limit: Callable[[], object] = lambda: None
        self._since = self._last_done = sim.now
        self._used = self._throttled = 0.0
        self._waiting: list[Timer] = []

    def limit(self, share: float | None) -> None:
        """Set or remove the quota. Without a quota the work that waits is done now."""
        self.on_limit()
        self._used, self._throttled = self.usage()
        self._since, self.share = self._sim.now, share
        if share is None:
            self._last_done, waiting, self._waiting = self._sim.now, self._waiting, []
            for timer in waiting:
                if not timer.cancelled and timer.due > self._sim.now:
                    timer.cancel()
                    self._sim.after(0.0, timer.call, *timer.args)

    def defer(self, call: Callable[..., Any], *args: Any) -> bool:
        """Call when the quota allows it; False, without a call, if there is no quota."""
        if self.share is None:
            return False
        rate = max(self.share - _IDLE, self.share * _FAIR)
        self._last_done = max(self._last_done, self._sim.now) + _TASK / rate
        self._waiting = [timer for timer in self._waiting if timer.due > self._sim.now]
        self._waiting.append(self._sim.at(self._last_done, call, *args))
        return True

    def usage(self) -> tuple[float, float]:
        """CPU seconds used and throttled seconds since the lab started."""
        passed = self._sim.now - self._since
        if self.share is None:
            return self._used + passed * _IDLE, self._throttled
        # housekeeping comes in bursts that use up a period's quota; the rest of the period is throttled
        busy = min(1.0, _IDLE / self.share)
        return self._used + passed * busy * self.share, self._throttled + passed * busy * (1 - self.share)
