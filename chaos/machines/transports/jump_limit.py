"""Limit on concurrent logins at one jump host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from chaos.core.errors import Unreachable
from chaos.machines.transports.settings import HostSettings

MAX_LOGINS = (
    6  # sshd may drop logins beyond ten that are in progress (MaxStartups 10:30:100), those of other users included
)
TIMEOUT_FACTOR = 4  # times the connect timeout


class JumpHostLimiter:
    """Login slots of this process, by address of the jump host. Thread safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._slots: dict[tuple[str, int], BoundedSemaphore] = {}

    @contextmanager
    def slot(self, jump: HostSettings) -> Iterator[None]:
        """Wait for a free login slot and hold it. Raises Unreachable on timeout."""
        with self._lock:
            semaphore = self._slots.setdefault((jump.address, jump.port), BoundedSemaphore(MAX_LOGINS))
        timeout = TIMEOUT_FACTOR * jump.connect_timeout
        if not semaphore.acquire(timeout=timeout):
            raise Unreachable(
                f"timed out after {timeout:g} s waiting for a free login slot on jump host {jump.label} "
                f"({MAX_LOGINS} in progress)",
                hint="check the jump host: its sshd, its load and the network to it",
            )
        try:
            yield
        finally:
            semaphore.release()
