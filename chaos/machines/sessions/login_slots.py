"""Limits the number of simultaneous logins through one jump host."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import BoundedSemaphore, Lock

from chaos.core.errors import Unreachable
from chaos.machines.sessions.settings import HostSettings

# sshd may drop logins beyond ten that are in progress (MaxStartups 10:30:100), those of other users included.
MAX_LOGINS = 6
TIMEOUT_FACTOR = 4  # times the connect timeout


class JumpHostLimiter:
    """Login slots of this process, by address of the jump host. Thread safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._slots: dict[Hashable, BoundedSemaphore] = {}

    def slot(self, jump: HostSettings) -> AbstractContextManager[None]:
        """Wait for a free login slot and hold it. Raises Unreachable on timeout."""
        return self.hold((jump.address, jump.port), f"jump host {jump.label}", jump.connect_timeout)

    @contextmanager
    def hold(self, key: Hashable, label: str, connect_timeout: float) -> Iterator[None]:
        """Like :meth:`slot`, with slots per ``key``."""
        with self._lock:
            semaphore = self._slots.setdefault(key, BoundedSemaphore(MAX_LOGINS))
        timeout = TIMEOUT_FACTOR * connect_timeout
        if not semaphore.acquire(timeout=timeout):
            raise Unreachable(
                f"timed out after {timeout:g} s waiting for a free login slot on {label} ({MAX_LOGINS} in progress)",
                hint="check the jump host: its sshd, its load and the network to it",
            )
        try:
            yield
        finally:
            semaphore.release()


JUMP_LIMITER = JumpHostLimiter()
