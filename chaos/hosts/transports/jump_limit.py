"""How many connections to one jump host are being opened at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from chaos.hosts.transports.settings import HostSettings
from chaos.model.errors import Unreachable

MAX_LOGINS = (
    6  # sshd may refuse the one after the tenth that has not logged in (MaxStartups 10:30:100); others come too
)
TIMEOUT_FACTOR = 4  # times the connect timeout


class JumpHostLimiter:
    """Of this process, by address; thread safe. All lines through a jump host begin with a login there."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._slots: dict[tuple[str, int], BoundedSemaphore] = {}

    @contextmanager
    def slot(self, jump: HostSettings) -> Iterator[None]:
        """Wait until it is our turn to log in there. Raises Unreachable."""
        with self._lock:
            door = self._slots.setdefault((jump.address, jump.port), BoundedSemaphore(MAX_LOGINS))
        patience = TIMEOUT_FACTOR * jump.connect_timeout
        if not door.acquire(timeout=patience):
            raise Unreachable(
                f"{jump.label} let nobody in for {patience:g} s: {MAX_LOGINS} logins there were not over",
                hint="see the jump host: its sshd, its load, its way to us",
            )
        try:
            yield
        finally:
            door.release()
