"""How long to wait before a broken watch is tried again."""

from __future__ import annotations

import random

# Seconds of cluster time.
SHORT_WATCH = 1.0  # a watch that ends sooner may be part of a hot loop
_RESET_AFTER = 5.0  # a watch that lasted so long makes earlier failures forgotten
_BASE_DELAY, _MAX_DELAY = 0.25, 5.0


class Backoff:
    """Exponential back-off with jitter; the first try after a good time is made at once."""

    def __init__(self) -> None:
        self._failures = 0
        self._short_watches = 0
        self._jitter = random.Random()  # noqa: S311 - spreads retries

    def record_failure(self, lived: float) -> float:
        """A watch of ``lived`` seconds broke (0: it was never open): how long to wait."""
        if lived >= _RESET_AFTER:
            self._failures = 0
        self._failures += 1
        if self._failures == 1:
            return 0.0
        return float(min(_MAX_DELAY, _BASE_DELAY * 2.0 ** min(self._failures - 2, 10)) * self._jitter.uniform(0.5, 1.0))

    def record_end(self, lived: float) -> bool:
        """A watch of ``lived`` seconds ended well. False if the server does nothing but end watches."""
        self._short_watches = self._short_watches + 1 if lived < SHORT_WATCH else 0
        return self._short_watches < 2
