"""Pauses between rejected logins: domains lock an account after a few wrong passwords."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import monotonic

from chaos.core.errors import NodefallError, Refused

_FIRST, _LONGEST = 15.0, 120.0  # seconds; a host that has just booted may reject a right password for a while


class RejectedLogin(Refused):
    """The host did not accept user and password."""


class LoginPause:
    """Whether one account may log in to one host now. Thread safe; ``now`` in seconds.

    After each rejection in a row the pause is twice as long.
    """

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now, self._lock = now, Lock()
        self._pause, self._until = 0.0, 0.0
        self._rejection: NodefallError | None = None

    def check(self) -> None:
        """Raises RejectedLogin, with what the host answered last, during a pause."""
        with self._lock:
            left = self._until - self._now()
            if self._rejection is None or left <= 0:
                return
            message = f"{self._rejection.message}; not tried again for {left:.0f} s, as accounts get locked"
            raise RejectedLogin(message, hint=self._rejection.hint)

    def reject(self, rejection: NodefallError) -> None:
        """A login was rejected: begin a pause."""
        with self._lock:
            self._rejection = rejection
            self._pause = min(max(_FIRST, self._pause * 2), _LONGEST)
            self._until = self._now() + self._pause

    def accept(self) -> None:
        """A login was accepted."""
        with self._lock:
            self._rejection, self._pause = None, 0.0
