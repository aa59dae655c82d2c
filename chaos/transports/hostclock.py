"""Many hosts begin at one instant: each waits for it by its own clock, which is measured while it waits to be fired."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from chaos.transports.script import ASK, GO, began_at

_ASKED = 12  # times at most
TUNING = 2.0  # seconds for all that
_ENOUGH, _TOO_MUCH = 0.002, 0.1  # seconds between the bounds: good enough, and not good enough
_ROUGH = -0.0001  # times are rounded, and clocks are slewed


class HostClock:
    """How far the clock of a host is ahead of ours: bounds, from when we asked for its time and when we knew it.

    ``tells``: its shell can tell the time and wait. A clock that was put meanwhile leaves no room between the bounds.
    """

    def __init__(self, tells: bool) -> None:
        self._tells = tells
        self._least, self._most = -inf, inf
        self._owed = 0  # answers that did not come in time

    @property
    def known(self) -> bool:
        return _ROUGH <= self._most - self._least <= _TOO_MUCH

    def measure(self, now: Callable[[], float], ask: Callable[[str], None], line: Callable[[], str | None]) -> bool:
        """Ask until it is known well; whether it is known."""
        for _ in range(_ASKED if self._tells else 0):
            asked = now()
            ask(ASK)
            self._owed += 1
            if (said := line()) is None:
                return False
            self._owed -= 1
            if (told := began_at(said)) is None:
                return False
            self._least, self._most = max(self._least, told - now()), min(self._most, told - asked)
            if self._most - self._least < _ENOUGH:
                break
        return self.known

    def word(self, at: float | None) -> str:
        """What fires it: at once, or when it is ``at`` there, of our time."""
        if at is None or not self.known:
            return f"{GO}\n"
        return f"{GO} {round((at + (self._least + self._most) / 2) * 1e6)}\n"

    def began(self, line: Callable[[], str | None]) -> float | None:
        """When the host says that it began, behind the answers that came too late."""
        for _ in range(self._owed):
            line()
        return began_at(line() or "")
