"""A process behind two outputs that carry a mark: what they show, and reading until they have ended."""

from __future__ import annotations

from abc import ABC, abstractmethod

from chaos.machines.transports.channel_io import ExitReason
from chaos.machines.transports.marked_output import MarkedOutput, truncation_note


class MarkedProcess(ABC):
    """Part of ``WaitingProcess``; a subclass reads the outputs. For one thread. ``deadline`` is of time.monotonic."""

    def __init__(self, mark: str, deadline: float) -> None:
        self._stdout, self._stderr = MarkedOutput("stdout", mark), MarkedOutput("stderr", mark)
        self._deadline = deadline
        self.closed = False

    @abstractmethod
    def _step(self) -> ExitReason | None:
        """Wait for output and take it; the exit reason, None while the command runs."""

    @property
    def stdout(self) -> str:
        return self._stdout.text

    @property
    def stderr(self) -> str:
        return self._stderr.text

    @property
    def note(self) -> str:
        """Which outputs were truncated, "" if none was."""
        return truncation_note(self._stdout, self._stderr)

    def extend(self, deadline: float) -> None:
        """Set a new deadline."""
        self._deadline = deadline

    def read_line(self) -> str | None:
        """Remove and return the first line of stdout; None if the program ends or times out before it has one."""
        while b"\n" not in self._stdout.data:
            if self._step() is not None:
                break
        return self._stdout.take_line()

    def wait(self) -> ExitReason:
        """Read until the command has ended, or the connection to it is lost."""
        while (reason := self._step()) is None:
            pass
        return reason
