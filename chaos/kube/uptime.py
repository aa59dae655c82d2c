"""The clock of the cluster's lock."""

from __future__ import annotations

import time


def uptime() -> float:
    """Seconds since boot, including those in which the machine was suspended, where the system counts them."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
