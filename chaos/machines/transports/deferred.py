"""Armed commands of transports that have nothing waiting on the host: one request starts them."""

from __future__ import annotations

from collections.abc import Callable

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.threads import ContextThread


class DeferredCommand:
    """Implements ``chaos.core.ports.Armed`` by ``run``, which sends a command and waits for its end.

    The connection is open, so that the command starts with one request; the start is not reported by the host.
    """

    def __init__(self, command: HostCommand, run: Callable[[HostCommand], Outcome]) -> None:
        self._command, self._run = command, run
        self._thread: ContextThread | None = None
        self._is_cancelled = False
        self._outcome: Outcome | None = None

    def calibrate(self, now: Callable[[], float]) -> bool:  # noqa: ARG002 - a start at a set time is impossible
        """False: the command starts when it is released."""
        return False

    def release(self, at: float | None = None) -> None:  # noqa: ARG002 - never calibrated
        """Send the command, without waiting."""
        if self._thread is None and not self._is_cancelled:
            self._thread = ContextThread(self._send)
            self._thread.start()

    def wait(self) -> Outcome:
        """Release the command if it is still armed, and wait for its end. Once."""
        self.release()
        if self._thread is not None:
            self._thread.join()
        outcome, self._outcome, self._is_cancelled = self._outcome, None, True
        return outcome or Outcome(Delivery.NOT_SENT, error="the command is no longer armed")

    def cancel(self) -> None:
        """Never send it, unless that was done."""
        self._is_cancelled = True

    def _send(self) -> None:
        self._outcome = Outcome(Delivery.LOST, error="sending the command failed; it may have run")  # if run raises
        self._outcome = self._run(self._command)
