"""Commands that wait behind a program or a stream of another system: armed, released with one line, awaited."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from time import monotonic
from typing import Protocol

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.machines.transports.channel_io import ExitReason
from chaos.machines.transports.host_clock import CALIBRATION_TIMEOUT, HostClock

_NO_LONGER_READY = "the command is no longer waiting on the host"


class WaitingProcess(Protocol):
    """What runs the shell script of ``script.exit_code_argv``; for one thread. Deadlines are of time.monotonic."""

    @property
    def stdout(self) -> str: ...

    @property
    def stderr(self) -> str: ...

    @property
    def note(self) -> str:
        """Which outputs were truncated, "" if none was."""

    @property
    def exit(self) -> int | None:
        """Of the command, None if it is unknown."""

    @property
    def is_running(self) -> bool: ...

    def extend(self, deadline: float) -> None:
        """Set a new deadline."""

    def send(self, line: str) -> None:
        """Write ``line`` at once. Raises OSError if the process has ended."""

    def write_stdin(self, text: str) -> None:
        """Send ``text`` and the end of the input, without waiting for the command to read it."""

    def read_line(self) -> str | None:
        """Remove and return the first line of stdout; None if there will be none."""

    def wait(self) -> ExitReason:
        """Read until the command has ended, or the connection to it is lost."""

    def close(self) -> None:
        """End what waits; a command that runs goes on. Further calls do nothing."""


class ArmedExec:
    """Implements ``chaos.core.ports.Armed``: a command that waits to be released or cancelled."""

    def __init__(self, command: HostCommand, process: WaitingProcess, clock: HostClock, label: str) -> None:
        self._command, self._process, self._clock, self._label = command, process, clock, label
        self._is_released = False
        self._not_sent: Outcome | None = None

    def calibrate(self, now: Callable[[], float]) -> bool:
        """Measure the host's clock; a failure meanwhile shows in the result of :meth:`wait`."""
        self._process.extend(monotonic() + CALIBRATION_TIMEOUT)
        try:
            return self._clock.measure(now, self._process.send, self._process.read_line)
        except OSError:
            return False

    def release(self, at: float | None = None) -> None:
        """Release the command with one write; not sent if the command is no longer waiting."""
        if self._is_released:
            return
        self._is_released, process = True, self._process
        if not process.is_running:
            self._not_sent = Outcome(Delivery.NOT_SENT, stderr=process.stderr, error=_NO_LONGER_READY)
            return
        process.extend(monotonic() + self._command.timeout)
        try:
            process.send(self._clock.clock_argument(at))
        except OSError as error:
            self._not_sent = Outcome(Delivery.NOT_SENT, error=f"the connection was lost before: {error}")
            return
        process.write_stdin(self._command.stdin)

    def wait(self) -> Outcome:
        """Release the command if it is still armed, and wait for its end. Once."""
        process = self._process
        with closing(process):
            self.release()
            if self._not_sent:
                return self._not_sent
            self._not_sent = Outcome(Delivery.NOT_SENT, error=_NO_LONGER_READY)
            start = self._clock.read_start_time(process.read_line)
            return self._outcome(process, process.wait(), start)

    def cancel(self) -> None:
        """Close the input: the shell ends without running anything."""
        self._process.close()

    def _outcome(self, process: WaitingProcess, exit_reason: ExitReason, start: float | None) -> Outcome:
        reason = {
            ExitReason.LOST: f"the connection to {self._label} was lost before the command ended",
            ExitReason.TIMED_OUT: f"no answer within {self._command.timeout:g} s; the command may still be running",
        }.get(exit_reason, "")
        return Outcome(
            Delivery.ANSWERED if exit_reason is ExitReason.EXITED else Delivery.LOST,
            exit=process.exit,
            stdout=process.stdout,
            stderr=process.stderr,
            began=start,
            error="; ".join(filter(None, (reason, process.note))),
        )
