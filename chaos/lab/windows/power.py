"""Shutdown of one Windows machine: the timer of InitiateShutdown, then the services, then power off or restart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaos.lab.node.logind import Kind
from chaos.lab.sim.clock import SimClock, Timer
from chaos.lab.windows.event_log import USER32, EventLog

IN_PROGRESS, NOT_IN_PROGRESS, ALREADY_SCHEDULED = 1115, 1116, 1190
_SESSIONS_END = 0.2  # invented: seconds between the end of the timer and the first notice to a service
LEGACY_REASON = "Legacy API shutdown|0x80070000"


class PowerError(Exception):
    """A request that Windows refuses, with its Win32 error code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"Win32 error {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class ShutdownRequest:
    """``seconds`` of the countdown; ``reason``: title and code, separated by a vertical bar."""

    kind: Kind
    seconds: float
    process: str = r"C:\Windows\system32\shutdown.exe"
    user: str = r"NT AUTHORITY\SYSTEM"
    reason: str = LEGACY_REASON
    comment: str = ""


class Power:
    """``stop_services`` stops the services and then calls its argument; ``complete`` cuts the power by kind."""

    def __init__(
        self,
        sim: SimClock,
        log: EventLog,
        stop_services: Callable[[Callable[[], None]], None],
        complete: Callable[[Kind], None],
    ) -> None:
        self._sim, self._log = sim, log
        self._stop_services, self._complete = stop_services, complete
        self.scheduled: ShutdownRequest | None = None
        self.is_in_progress = False
        self.accepts_late_abort = False
        self.on_countdown: Callable[[], None] = lambda: None
        self._timer: Timer | None = None

    def request(self, request: ShutdownRequest) -> None:
        """Start a countdown, which may be 0 s. Raises PowerError."""
        if self.is_in_progress:
            raise PowerError(IN_PROGRESS)
        if self.scheduled is not None:
            raise PowerError(ALREADY_SCHEDULED)
        kind = "restart" if request.kind == "reboot" else "power off"
        self._log.log_shutdown_request(request.process, request.user, kind, request.reason, request.comment)
        self.scheduled = request
        self._timer = self._sim.after(request.seconds, self._begin)
        if request.seconds:
            self.on_countdown()
        else:
            self.is_in_progress = True

    def abort(self) -> None:
        """End the countdown. Raises PowerError: a shutdown whose countdown is over cannot be aborted."""
        if self.is_in_progress and self.accepts_late_abort:
            return
        if self.scheduled is None or self.is_in_progress:  # invented: 1116 also once the services are being stopped
            raise PowerError(NOT_IN_PROGRESS)
        self.lose_power()
        self._log.write(USER32, 1075)

    def lose_power(self) -> None:
        """Drop the countdown or the shutdown in progress."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.scheduled = None
        self.is_in_progress = False

    def _begin(self) -> None:
        self.is_in_progress = True
        self._timer = self._sim.after(_SESSIONS_END, self._stop_services, self._stopped)

    def _stopped(self) -> None:
        if self.scheduled is not None and self.is_in_progress:
            self._log.log_stop()
            self._complete(self.scheduled.kind)
