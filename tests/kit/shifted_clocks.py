"""Clocks of this process that another process sets: the functions of ``time`` that nodefall reads.

``install`` before anything imports those functions by name. Waits in the kernel, as the time-out of a socket, do not
see the shift.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

WALL, SINCE_BOOT = 0, 1  # indexes of the seconds to be added
_CLOCK_INDEX = {time.CLOCK_REALTIME: WALL, time.CLOCK_MONOTONIC: SINCE_BOOT, time.CLOCK_BOOTTIME: SINCE_BOOT}


class _Shifts:
    """``seconds`` is memory that processes share, once there is another process."""

    seconds: Sequence[float] = (0.0, 0.0)


def use(seconds: Sequence[float]) -> None:
    """From now on this process reads its clocks with these ``seconds`` added, whatever they are at the time."""
    _Shifts.seconds = seconds


def install() -> None:
    """Replace the functions of ``time``."""
    clock_gettime = time.clock_gettime
    time.time = _shifted(time.time, WALL)
    time.monotonic = _shifted(time.monotonic, SINCE_BOOT)

    def shifted_clock_gettime(clock: int) -> float:
        now = clock_gettime(clock)
        return now + _Shifts.seconds[_CLOCK_INDEX[clock]] if clock in _CLOCK_INDEX else now

    time.clock_gettime = shifted_clock_gettime


def _shifted(clock: Callable[[], float], index: int) -> Callable[[], float]:
    return lambda: clock() + _Shifts.seconds[index]
