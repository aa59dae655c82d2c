"""Backoff: how long to wait before a broken watch is opened again."""

from __future__ import annotations

import random

# Seconds of cluster time.
SHORT_WATCH = 1.0  # a watch that ends sooner may be part of a hot loop
_RESET_AFTER = 5.0  # a watch that lasted this long resets the failure count
_BASE_DELAY, _MAX_DELAY = 0.25, 5.0


class Backoff:
    """Exponential backoff with jitter. The first retry after a good watch is immediate."""

    def __init__(self) -> None:
        self._failures = 0
        self._short_watches = 0
        self._jitter = random.Random()  # noqa: S311 - spreads retries

    def record_failure(self, lifetime: float) -> float:
        """Count a watch that broke after ``lifetime`` seconds (0: it never opened); returns the delay in seconds."""
        if lifetime >= _RESET_AFTER:
            self._failures = 0
        self._failures += 1
        if self._failures == 1:
            return 0.0
        delay = min(_MAX_DELAY, _BASE_DELAY * 2.0 ** min(self._failures - 2, 10))
        return float(delay * self._jitter.uniform(0.5, 1.0))

    def record_end(self, lifetime: float) -> bool:
        """Count a watch that ended regularly; False if the server ends watches at once."""
        self._short_watches = self._short_watches + 1 if lifetime < SHORT_WATCH else 0
        return self._short_watches < 2
