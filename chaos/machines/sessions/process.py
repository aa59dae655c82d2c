"""Programs on a host, behind an SSH channel, a stream or another program: their outputs, read until their end."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum

LIMIT = 1 << 20  # bytes of stdout, and of stderr, that are stored
_TAIL = 128  # bytes at the end of an output that are searched for the mark and the exit code


class ExitReason(Enum):
    """EXITED: with an exit status. KILLED: by a signal. LOST: the connection broke. TIMED_OUT: at the deadline."""

    EXITED = "exited"
    KILLED = "killed"
    LOST = "lost"
    TIMED_OUT = "late"


@dataclass
class Output:
    """The first bytes of one output; the rest is counted as truncated."""

    name: str
    data: bytearray = field(default_factory=bytearray)
    is_truncated: bool = False

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def append(self, data: bytes) -> None:
        """Take what has come."""
        room = LIMIT - len(self.data)
        self.data += data[:room]
        self.is_truncated |= len(data) > room

    def take_line(self) -> str | None:
        """Remove and return the first line, None without a whole one."""
        line, newline, rest = bytes(self.data).partition(b"\n")
        if not newline:
            return None
        self.data[:] = rest
        return line.decode("utf-8", "replace")


@dataclass
class MarkedOutput(Output):
    """An output that ends with a line of ``mark`` and the exit code of the inner program, which is then ``exit``."""

    mark: str = ""
    tail: bytes = b""
    is_closed: bool = False
    exit: int | None = None

    @property
    def text(self) -> str:
        return self._end().split(bytes(self.data))[0].decode("utf-8", "replace")

    def append(self, data: bytes) -> None:
        """Take what has come; nothing for the end of the output. The mark ends it too."""
        super().append(data)
        self.tail += data
        self.is_closed |= not data
        if match := self._end().search(self.tail):
            self.exit, self.is_closed = int(match[1]), True
        self.tail = self.tail[-_TAIL:]

    def _end(self) -> re.Pattern[bytes]:
        return re.compile(rf"{self.mark} (\d+)\n".encode())


def truncation_note(*outputs: Output) -> str:
    """Which outputs were truncated, "" if none was."""
    truncated = [output.name for output in outputs if output.is_truncated]
    return f"{' and '.join(truncated)} truncated at 1 MiB" if truncated else ""


class Process(ABC):
    """A program on a host; a subclass reads its outputs. For one thread. ``deadline`` is of time.monotonic."""

    def __init__(self, stdout: Output, stderr: Output, deadline: float) -> None:
        self._outputs = stdout, stderr
        self._deadline = deadline
        self.closed = False

    @property
    def stdout(self) -> str:
        return self._outputs[0].text

    @property
    def stderr(self) -> str:
        return self._outputs[1].text

    @property
    def note(self) -> str:
        """Which outputs were truncated, "" if none was."""
        return truncation_note(*self._outputs)

    def extend(self, deadline: float) -> None:
        """Set a new deadline."""
        self._deadline = deadline

    def read_line(self) -> str | None:
        """Remove and return the first line of stdout; None if the program ends or times out before it has one."""
        while b"\n" not in self._outputs[0].data:
            if self._step() is not None:
                break
        return self._outputs[0].take_line()

    def wait(self) -> ExitReason:
        """Read until the program has ended, or the connection to it is lost."""
        while (reason := self._step()) is None:
            pass
        return reason

    @property
    @abstractmethod
    def exit(self) -> int | None:
        """Of the command, None if it is unknown."""

    @property
    @abstractmethod
    def is_running(self) -> bool: ...

    @abstractmethod
    def send(self, line: str) -> None:
        """Write ``line`` at once. Raises OSError or EOFError if the process has ended."""

    @abstractmethod
    def write_stdin(self, text: str) -> None:
        """Send ``text`` and the end of the input, without waiting for the command to read it."""

    @abstractmethod
    def close(self) -> None:
        """End what waits; a command that runs goes on. Further calls do nothing."""

    @abstractmethod
    def _step(self) -> ExitReason | None:
        """Wait for output and take it; the exit reason, None while the command runs."""


class MarkedProcess(Process):
    """A process behind two outputs that end with a mark."""

    def __init__(self, mark: str, deadline: float) -> None:
        self._stdout, self._stderr = MarkedOutput("stdout", mark=mark), MarkedOutput("stderr", mark=mark)
        super().__init__(self._stdout, self._stderr, deadline)

    @property
    def exit(self) -> int | None:
        return self._stderr.exit if self._stdout.exit is None else self._stdout.exit

    @abstractmethod
    def kill(self) -> None:
        """Break the connection, from any thread. The command goes on, unless it still waits to be released."""
