"""The clock of a rehearsal: sleeping moves the simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from chaos.lab.facade import SimClock
from chaos.rehearsal.turns import Turns


class RehearsalClock:
    """Implements ``chaos.core.ports.Clock``. Times are whole microseconds, as those of a lab's time source."""

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self.threads = Turns(sim)
        self._is_woken = False

    def now(self) -> float:
        return round(self._sim.now, 6)

    def sleep(self, seconds: float) -> bool:
        """Sleep ``seconds``; False if :meth:`wake` ended the sleep early."""
        if self._is_woken:
            self.threads.give_way()
            return False
        if seconds > 0:
            self.threads.block(math.ceil((self._sim.now + seconds) * 1e6) / 1e6, can_be_woken=True)
        return not self._is_woken

    def gather(self) -> None:
        """No-op: nothing arrives while a thread has its turn."""

    def settle(self) -> bool:
        """No-op: time does not move while a thread has its turn, and ``threads.wait`` gives the others theirs."""
        return False

    def wake(self) -> None:
        self._is_woken = True
        self.threads.wake()

    def resume(self) -> None:
        self._is_woken = False

    @contextmanager
    def participant(self) -> Iterator[None]:
        """No-op: time never moves while a thread has its turn."""
        yield

    def close(self) -> None:
        """End all threads but the calling one."""
        self.threads.close()
