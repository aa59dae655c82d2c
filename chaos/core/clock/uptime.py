"""What measures time while this machine is suspended and its clock is set: of the cluster's lock, and of a run."""

from __future__ import annotations

import time


def uptime() -> float:
    """Seconds since boot, including those in which the machine was suspended, where the system counts them."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
