"""One program of this machine on pipes: input, output within limits, and how it ended."""

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
_TAIL = 128  # bytes in which the mark and the code are looked for


@dataclass(slots=True)
class _Stream:
    """One output: what is kept of it, and its end, in which the mark is looked for."""

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
    """For one thread, but :meth:`stop` for all. A line that begins with ``mark`` ends each output and tells the code.

    Without it nobody knows how the program within ended, whatever the outer one says.
    """

    def __init__(self, argv: Sequence[str], mark: str, deadline: float) -> None:
        """Raises OSError where it cannot be started."""
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
        """Says what was cut, "" if nothing was."""
        cut = [stream.name for stream in self._streams.values() if stream.is_truncated]
        return f"{' and '.join(cut)} cut at 1 MiB" if cut else ""

    @property
    def is_running(self) -> bool:
        return not self.closed and self._process.poll() is None

    def extend(self, deadline: float) -> None:
        """From now on wait until ``deadline``."""
        self._deadline = deadline

    def send(self, line: str) -> None:
        """One write. Raises OSError when the program is gone."""
        os.write(self._stdin.fileno(), line.encode())

    def write_stdin(self, text: str) -> None:
        """Send ``text`` and the end of file, from a thread, as the program may answer before it has read all."""
        Thread(target=self._write_stdin, args=(text.encode(),), daemon=True).start()

    def read_line(self) -> str | None:
        """Take the first line of stdout as soon as it is there; None if the program ends, or time is up, before."""
        while b"\n" not in self._stdout.data:
            if self._step() is not None:
                break
        line, newline, rest = bytes(self._stdout.data).partition(b"\n")
        if not newline:
            return None
        self._stdout.data[:] = rest
        return line.decode("utf-8", "replace")

    def wait(self) -> ExitReason:
        """Read until the program within has ended, or the line to it is lost."""
        while (ended := self._step()) is None:
            pass
        return ended

    def kill(self) -> None:
        """End the outer program. What it started may go on."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """The same, and forget it; once."""
        if not self.closed:
            self.closed = True
            self._close_input()
            self.kill()
            for pipe in self._pipes:
                pipe.close()

    def _step(self) -> ExitReason | None:
        """Wait for output and read it; how it ended, or None. What was left behind may hold outputs open for ever."""
        waited = [fd for fd, stream in self._streams.items() if not stream.is_closed]
        if not waited:
            return ExitReason.LOST if self.exit is None else ExitReason.EXITED
        left = self._deadline - monotonic()
        if left <= 0:
            return ExitReason.TIMED_OUT
        for fd in select.select(waited, [], [], left)[0]:
            self._append(self._streams[fd], os.read(fd, _CHUNK))
        return None

    def _append(self, stream: _Stream, data: bytes) -> None:
        stream.append(data)
        if told := self._end_marker.search(stream.tail):
            self.exit, stream.is_closed = int(told[1]), True
        stream.tail = stream.tail[-_TAIL:]

    def _write_stdin(self, data: bytes) -> None:
        try:
            if data:
                self._stdin.write(data)
        except (OSError, ValueError):
            return  # it ended without reading on, or was given up
        finally:
            self._close_input()

    def _close_input(self) -> None:
        try:
            self._stdin.close()
        except OSError:
            return  # what it would not read
