"""Programs on a host, behind an SSH channel, a stream or another program: their outputs, read until their end.

Marks that are drawn for one command frame each of its outputs. What a login shell, sudo or a container engine prints is
outside of the frame, and never becomes part of a value.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum

LIMIT = 1 << 20  # bytes of stdout, and of stderr, that are stored
_GREETING_LIMIT = 8192  # bytes of a greeting that are stored, the last ones
_TAIL = 128  # bytes at the end of an output that are searched for the mark and the exit code


class ExitReason(Enum):
    """EXITED: it has ended. KILLED: by a signal. LOST: the connection broke. TIMED_OUT: at the deadline."""

    EXITED = "exited"
    KILLED = "killed"
    LOST = "lost"
    TIMED_OUT = "late"


@dataclass
class Output:
    """The first bytes of an output. The rest is counted as truncated. Without marks, everything comes from the
    program.
    """

    name: str
    data: bytearray = field(default_factory=bytearray)
    is_truncated: bool = False
    is_closed: bool = False
    has_shell: bool = False
    version: str | None = ""
    exit: int | None = None

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    @property
    def greeting_text(self) -> str:
        """The text that the host printed before the output of the command."""
        return ""

    def append(self, data: bytes) -> None:
        """Append received bytes; empty bytes mean the end of the output."""
        self.is_closed |= not data
        room = LIMIT - len(self.data)
        self.data += data[:room]
        self.is_truncated |= len(data) > room

    def take_line(self) -> str | None:
        """Remove and return the first line; None if no complete line has arrived."""
        line, newline, rest = bytes(self.data).partition(b"\n")
        if not newline:
            return None
        self.data[:] = rest
        return line.decode("utf-8", "replace")


class FramedOutput(Output):
    """An output with the lines ``MARK shell``, ``MARK ready VERSION`` and ``MARK CODE``.

    ``shell``: a POSIX shell runs, and sudo is next. ``ready``: the command is next; VERSION is bash's, "" for another
    shell, and None until the line has come. CODE: the command has ended, and ``exit`` is its exit code.
    """

    def __init__(self, name: str, mark: str) -> None:
        super().__init__(name, version=None)
        self._shell = re.compile(rf"{mark} shell\n".encode())
        self._ready = re.compile(rf"{mark} ready ?([!-~]*)\n".encode())
        self._end = re.compile(rf"{mark} (\d+)\n".encode())
        self._greeting, self._tail = bytearray(), b""

    @property
    def text(self) -> str:
        return self._end.split(bytes(self.data))[0].decode("utf-8", "replace")

    @property
    def greeting_text(self) -> str:
        return self._shell.sub(b"", bytes(self._greeting)).decode("utf-8", "replace")

    @property
    def preface(self) -> str:
        """The text between the lines ``shell`` and ``ready``."""
        return self._shell.split(bytes(self._greeting))[-1].decode("utf-8", "replace")

    def append(self, data: bytes) -> None:
        """Append received bytes; empty bytes mean the end of the output. The line with the exit code also ends it."""
        body = data if self.version is not None else self._greet(data)
        super().append(body)
        self._tail += body
        if match := self._end.search(self._tail):
            self.exit = int(match[1])
        self.is_closed = not data or self.exit is not None
        self._tail = self._tail[-_TAIL:]

    def _greet(self, data: bytes) -> bytes:
        """Consume everything before the line ``ready``; returns the rest of ``data``."""
        self._greeting += data
        self.has_shell |= bool(self._shell.search(self._greeting))
        match = self._ready.search(self._greeting)
        if not match:
            del self._greeting[:-_GREETING_LIMIT]
            return b""
        rest = bytes(self._greeting[match.end() :])
        self.version = match[1].decode("ascii")
        del self._greeting[match.start() :]
        return rest


def truncation_note(*outputs: Output) -> str:
    """Which outputs were truncated, "" if none was."""
    truncated = [output.name for output in outputs if output.is_truncated]
    return f"{' and '.join(truncated)} truncated at 1 MiB" if truncated else ""


class Process(ABC):
    """A program on a host; a subclass reads its outputs. For one thread. ``deadline`` is of time.monotonic.

    ``mark``: what frames its outputs, "" for a program that prints no marks.
    """

    def __init__(self, mark: str, deadline: float) -> None:
        self._stdout, self._stderr = (
            FramedOutput(name, mark) if mark else Output(name) for name in ("stdout", "stderr")
        )
        self._deadline = deadline
        self.closed = False

    @property
    def stdout(self) -> str:
        return self._stdout.text

    @property
    def stderr(self) -> str:
        return self._stderr.text

    @property
    def exit(self) -> int | None:
        """The exit code of the command, or None if it is unknown."""
        return self._stderr.exit if self._stdout.exit is None else self._stdout.exit

    @property
    def has_shell(self) -> bool:
        """Whether a POSIX shell has started; it then starts sudo."""
        return self._stdout.has_shell or self._stderr.has_shell

    @property
    def has_started(self) -> bool:
        """Whether the start mark has arrived. If the process ends without it, nothing has run."""
        return self._stdout.version is not None or self._stderr.version is not None

    @property
    def greeting(self) -> str:
        """What the host printed before the output of the command, for messages."""
        return "\n".join(filter(None, (each.greeting_text.strip() for each in (self._stdout, self._stderr))))

    @property
    def preface(self) -> str:
        """What was printed between the shell mark and the start mark."""
        return self._stdout.preface if isinstance(self._stdout, FramedOutput) else ""

    @property
    def note(self) -> str:
        """Which outputs were truncated, "" if none was."""
        return truncation_note(self._stdout, self._stderr)

    def extend(self, deadline: float) -> None:
        """Set a new deadline."""
        self._deadline = deadline

    def await_start(self) -> str | None:
        """Wait for the start mark. Returns bash's version, "" for another shell; None if the process ends before."""
        while self._stdout.version is None:
            if self._step() is not None:
                break
        return self._stdout.version

    def read_line(self) -> str | None:
        """Remove and return the first line of stdout; None if the program ends or times out before it has one."""
        while b"\n" not in self._stdout.data:
            if self._step() is not None:
                break
        return self._stdout.take_line()

    def wait(self) -> ExitReason:
        """Read until the program has ended, or the connection to it is lost."""
        while (reason := self._step()) is None:
            pass
        return reason

    @property
    @abstractmethod
    def is_running(self) -> bool: ...

    @abstractmethod
    def send(self, line: str) -> None:
        """Write ``line`` immediately. Raises OSError or EOFError if the process has ended."""

    @abstractmethod
    def write_stdin(self, text: str) -> None:
        """Send ``text`` and the end of the input, without waiting for the command to read it."""

    @abstractmethod
    def kill(self) -> None:
        """Break the connection, from any thread. The command continues, unless it still waits to be released."""

    @abstractmethod
    def close(self) -> None:
        """End a waiting command; a running command continues. Further calls do nothing."""

    @abstractmethod
    def _step(self) -> ExitReason | None:
        """Wait for output and read it. Returns the exit reason, None while the command runs."""
