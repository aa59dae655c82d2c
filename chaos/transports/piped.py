"""One program of this machine on pipes: input, output within limits, and how it ended."""

from __future__ import annotations

import os
import re
import select
import subprocess
from collections.abc import Sequence
from threading import Thread
from time import monotonic

from chaos.transports.exchange import LIMIT, Ended

_CHUNK = 1 << 16
_TAIL = 128  # bytes in which the mark and the code are looked for


class Piped:
    """For one thread, but :meth:`stop` for all. ``mark`` begins the line on stderr that tells the inner exit code.

    Without that line it is not known how the program within ended, whatever the outer one says.
    """

    def __init__(self, argv: Sequence[str], mark: str, deadline: float) -> None:
        """Raises OSError where it cannot be started."""
        self._process = process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._stdin, *self._pipes = [p for p in (process.stdin, process.stdout, process.stderr) if p]
        self._deadline = deadline
        self._told = re.compile(rf"{mark} (\d+)\n".encode())
        self._tail = b""
        self._outputs = {pipe.fileno(): bytearray() for pipe in self._pipes}
        self._open = dict(zip(self._outputs, ("stdout", "stderr"), strict=True))
        self._stdout, self._stderr = self._outputs.values()
        self._cut: list[str] = []
        self.closed = False
        self.exit: int | None = None

    @property
    def stdout(self) -> str:
        return self._stdout.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self._told.split(bytes(self._stderr))[0].decode("utf-8", "replace")

    @property
    def note(self) -> str:
        """Says what was cut, "" if nothing was."""
        return f"{' and '.join(self._cut)} cut at 1 MiB" if self._cut else ""

    @property
    def running(self) -> bool:
        return not self.closed and self._process.poll() is None

    def extend(self, deadline: float) -> None:
        """From now on wait until ``deadline``."""
        self._deadline = deadline

    def send(self, line: str) -> None:
        """One write. Raises OSError when the program is gone."""
        os.write(self._stdin.fileno(), line.encode())

    def feed(self, text: str) -> None:
        """Send ``text`` and the end of file, from a thread, as the program may answer before it has read all."""
        Thread(target=self._feed, args=(text.encode(),), daemon=True).start()

    def line(self) -> str | None:
        """Take the first line of stdout as soon as it is there; None if the program ends, or time is up, before."""
        while b"\n" not in self._stdout:
            if self._step() is not None:
                break
        line, newline, rest = bytes(self._stdout).partition(b"\n")
        if not newline:
            return None
        self._stdout[:] = rest
        return line.decode("utf-8", "replace")

    def finish(self) -> Ended:
        """Read until the program within has ended, or the line to it is lost."""
        while (ended := self._step()) is None:
            pass
        return ended

    def stop(self) -> None:
        """End the outer program. What it started may go on."""
        self._process.kill()

    def close(self) -> None:
        """The same, and forget it; once."""
        if not self.closed:
            self.closed = True
            self._close_input()
            self.stop()
            self._process.wait()
            for pipe in self._pipes:
                pipe.close()

    def _step(self) -> Ended | None:
        """Wait for output and read it; how it ended, or None."""
        told = self.exit is not None
        left = self._deadline - monotonic()
        if left <= 0:
            return Ended.EXITED if told else Ended.LATE
        # One stream carries both outputs in order: what was printed before the end is here. What it left behind may
        # hold them open for ever.
        ready, _, _ = select.select(list(self._open), [], [], 0 if told else left)
        for fd in ready:
            data = os.read(fd, _CHUNK)
            if data:
                self._keep(fd, data)
            else:
                del self._open[fd]
        if told and not ready:
            return Ended.EXITED
        return None if self._open else (Ended.LOST if self.exit is None else Ended.EXITED)

    def _keep(self, fd: int, data: bytes) -> None:
        buffer, name = self._outputs[fd], self._open[fd]
        room = LIMIT - len(buffer)
        buffer += data[:room]
        if len(data) > room and name not in self._cut:
            self._cut.append(name)
        if name == "stderr" and self.exit is None:
            end = self._tail + data
            told = self._told.search(end)
            self.exit = int(told[1]) if told else None
            self._tail = end[-_TAIL:]

    def _feed(self, data: bytes) -> None:
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
