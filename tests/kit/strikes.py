"""The part of a death that a process cannot do to itself: done by the process that started it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, MutableSequence
from dataclasses import dataclass
from pathlib import Path

from tests.kit.deaths import DEATHS, STOP_SECONDS
from tests.kit.shifted_clocks import SINCE_BOOT, WALL
from tests.kit.sweeplab import SweepLab

# Wall seconds for which a process is really stopped; on the clocks that it reads it is a minute.
STOP_WALL = float(os.environ.get("NODEFALL_SWEEP_STOP", "0.1"))
_THIEF_STAYS = 0.5  # wall seconds after the run has noticed


@dataclass
class Terminal:
    """The other end of a process's terminal."""

    name: str
    number: int | None

    def close(self) -> None:
        if self.number is not None:
            os.close(self.number)
        self.number = None


@dataclass
class Striker:
    """Strikes the process ``pid``, which makes its part of ``death`` afterwards.

    ``clock_shifts``: seconds that it adds to its clocks. ``replay``: data of a ConfigMap.
    """

    lab: SweepLab
    death: str
    pid: int
    clock_shifts: MutableSequence[float]
    terminal: Terminal | None
    replay: Mapping[str, str]

    def strike(self) -> bool:
        """Do the parent's part. The process waits meanwhile. False if there is nothing to be struck."""
        death, intruder = DEATHS[self.death], self.lab.intruder
        if death.needs_replica and not self.lab.has_replica():
            return False
        {
            "lost-network": self.lab.cut,
            "lost-terminal": self._close_terminal,
            "journal-edited": intruder.edit,
            "journal-garbled": intruder.garble,
            "journal-deleted": intruder.delete,
            "journal-replayed": lambda: intruder.replay(self.replay),
            "lock-stolen": intruder.steal,
            "lock-stolen-released": intruder.steal,
            "stopped": self._stop,
            "stopped-stolen": lambda: self._stop(intruder.steal),
            "clock-forward": self._set_clock,
            "clock-back": self._set_clock,
        }.get(self.death, lambda: None)()
        return True

    def leave(self) -> None:
        """The thief, if there is one, stays a while, and then the lock is free or expires."""
        time.sleep(_THIEF_STAYS)
        self.lab.intruder.leave(delete=self.death == "lock-stolen-released")

    def _close_terminal(self) -> None:
        if self.terminal:
            self.terminal.close()

    def _set_clock(self) -> None:
        self.clock_shifts[WALL] += DEATHS[self.death].clock_jump

    def _stop(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """A minute passes in the cluster and on this process's clocks, too, but not in the kernel's time-outs."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            while _state(self.pid) != "T":
                time.sleep(0.001)
            begin = time.monotonic()
            passed = self.lab.pass_time(STOP_SECONDS, STOP_WALL)
            meanwhile()
            for clock in (WALL, SINCE_BOOT):
                self.clock_shifts[clock] += max(0.0, passed - (time.monotonic() - begin))
        finally:
            os.kill(self.pid, signal.SIGCONT)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
