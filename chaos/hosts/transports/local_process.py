"""Input and output of a program of this machine on pipes, with a limit on output."""

from __future__ import annotations

import os
import re
import select
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Thread
from time import monotonic

from chaos.hosts.transports.channel_io import LIMIT, ExitReason

_CHUNK = 1 << 16
_TAIL = 128  # bytes at the end of an output that are searched for the mark and the exit code


@dataclass(slots=True)
class _Stream:
    """One output: its stored data, and its end, which is searched for the mark."""

    name: str
    data: bytearray = field(default_factory=bytearray)
    tail: bytes = b""
    is_truncated: bool = False
    is_closed: bool = False

    def append(self, data: bytes) -> None:
        room = LIMIT - len(self.data)
        self.data += data[:room]
        self.is_truncated |= len(data) > room
        self.tail += data
        self.is_closed |= not data


class LocalProcess:
    """A program that runs another one elsewhere, as ``docker exec``. For one thread; :meth:`kill` is for all.

    Each output ends with a line of ``mark`` and the exit code of the inner program. Without that line the result of the
    inner program is unknown, whatever the exit code of the outer one.
    """

    def __init__(self, argv: Sequence[str], mark: str, deadline: float) -> None:
        """Raises OSError if the program cannot be started."""
        self._process = process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._stdin, *pipes = [p for p in (process.stdin, process.stdout, process.stderr) if p]
        self._deadline = deadline
        self._end_marker = re.compile(rf"{mark} (\d+)\n".encode())
        self._streams = {pipe.fileno(): _Stream(name) for pipe, name in zip(pipes, ("stdout", "stderr"), strict=True)}
        self._stdout, self._stderr = self._streams.values()
        self._pipes = pipes
        self.closed = False
        self.exit: int | None = None

    @property
    def stdout(self) -> str:
        return self._text(self._stdout)

    @property
    def stderr(self) -> str:
        return self._text(self._stderr)

    def _text(self, stream: _Stream) -> str:
        return self._end_marker.split(bytes(stream.data))[0].decode("utf-8", "replace")

    @property
    def note(self) -> str:
        """Which outputs were truncated, "" if none was."""
        truncated = [stream.name for stream in self._streams.values() if stream.is_truncated]
        return f"{' and '.join(truncated)} truncated at 1 MiB" if truncated else ""

    @property
    def is_running(self) -> bool:
        return not self.closed and self._process.poll() is None

    def extend(self, deadline: float) -> None:
        """Set a new deadline."""
        self._deadline = deadline

    def send(self, line: str) -> None:
        """Write ``line`` at once. Raises OSError if the program has ended."""
        os.write(self._stdin.fileno(), line.encode())

    def write_stdin(self, text: str) -> None:
        """Send ``text`` and end of file from a thread, as the program may write before it has read everything."""
        Thread(target=self._write_stdin, args=(text.encode(),), daemon=True).start()

    def read_line(self) -> str | None:
        """Remove and return the first line of stdout; None if the program ends or times out before it has one."""
        while b"\n" not in self._stdout.data:
            if self._step() is not None:
                break
        line, newline, rest = bytes(self._stdout.data).partition(b"\n")
        if not newline:
            return None
        self._stdout.data[:] = rest
        return line.decode("utf-8", "replace")

    def wait(self) -> ExitReason:
        """Read until the inner program has ended, or the connection to it is lost."""
        while (reason := self._step()) is None:
            pass
        return reason

    def kill(self) -> None:
        """Kill the outer program. The inner one may go on."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Kill the outer program and close the pipes. Further calls do nothing."""
        if not self.closed:
            self.closed = True
            self._close_input()
            self.kill()
            for pipe in self._pipes:
                pipe.close()

    def _step(self) -> ExitReason | None:
        """Wait for output and read it; the exit reason, None while the program runs.

        A process that the inner program started may have the outputs open for ever: the mark ends them."""
        open_fds = [fd for fd, stream in self._streams.items() if not stream.is_closed]
        if not open_fds:
            return ExitReason.LOST if self.exit is None else ExitReason.EXITED
        remaining = self._deadline - monotonic()
        if remaining <= 0:
            return ExitReason.TIMED_OUT
        for fd in select.select(open_fds, [], [], remaining)[0]:
            self._append(self._streams[fd], os.read(fd, _CHUNK))
        return None

    def _append(self, stream: _Stream, data: bytes) -> None:
        stream.append(data)
        if match := self._end_marker.search(stream.tail):
            self.exit, stream.is_closed = int(match[1]), True
        stream.tail = stream.tail[-_TAIL:]

    def _write_stdin(self, data: bytes) -> None:
        try:
            if data:
                self._stdin.write(data)
        except (OSError, ValueError):
            return  # the program ended without reading on, or was killed
        finally:
            self._close_input()

    def _close_input(self) -> None:
        try:
            self._stdin.close()
        except OSError:
            return  # the program has not read everything
