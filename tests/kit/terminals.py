"""A program on a pseudo-terminal, whose screen is read as a person sees it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyte

PATIENCE = 240.0  # wall seconds that anything may take on a busy machine
_NOT_UNDERSTOOD = (b"\x1b[?2004h", b"\x1b[?2004l")  # bracketed paste, which a shell turns on


class Terminal:
    """The terminal of one process. ``raw``: all that was written to it; ``frames``: its text after each chunk."""

    def __init__(self, pid: int, descriptor: int, columns: int, lines: int) -> None:
        self.pid, self.raw = pid, b""
        self.frames: list[str] = []
        self.status: int | None = None
        self._descriptor = descriptor
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self.resize(columns, lines)

    @property
    def text(self) -> str:
        """The screen, without what is blank at the end of its lines."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def has_cursor(self) -> bool:
        """Whether the cursor is shown."""
        return not self._screen.cursor.hidden

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self._descriptor)

    def type(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        self._screen.resize(lines, columns)
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, *texts: str) -> str:
        """Read until the screen has all ``texts``; the screen. Raises AssertionError if it ends or takes too long."""
        return self.wait_until(lambda screen: all(text in screen for text in texts), f"{texts} on the screen")

    def wait_until(self, holds: Callable[[str], bool], what: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while not holds(self.text):
            is_open = self._read()
            assert is_open or holds(self.text), f"ended without {what}:\n{self.text}"
            assert time.monotonic() < deadline, f"no {what}:\n{self.text}"
        return self.text

    def wait(self) -> int:
        """Read until the process has ended; its exit code, or the negative number of the signal that ended it."""
        deadline = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < deadline, f"still running:\n{self.text}"
        return self._reap()

    def close(self) -> None:
        if self.status is None:
            os.kill(self.pid, 9)
            self._reap()
        os.close(self._descriptor)

    def _read(self) -> bool:
        """Read what there is for a moment; False at the end."""
        if not select.select([self._descriptor], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # EIO: no process has it open
            return False
        self.raw += data
        for sequence in _NOT_UNDERSTOOD:
            data = data.replace(sequence, b"")
        self._stream.feed(data)
        if not self.frames or self.frames[-1] != self.text:
            self.frames.append(self.text)
        return bool(data) or bool(self.raw)

    def _reap(self) -> int:
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]
        return os.waitstatus_to_exitcode(self.status)


@contextmanager
def on_terminal(
    command: Sequence[str], columns: int, lines: int, environment: Mapping[str, str], cwd: Path
) -> Iterator[Terminal]:
    """Run ``command`` as the leader of a session with a separate terminal."""
    pid, descriptor = pty.fork()
    if pid == 0:
        try:
            os.chdir(cwd)
            for number in (signal.SIGINT, signal.SIGQUIT):  # ignored by what a shell starts in the background
                signal.signal(number, signal.SIG_DFL)
            os.execvpe(command[0], list(command), {**environment, "TERM": "xterm-256color", "LANG": "C.UTF-8"})  # noqa: S606 - on a terminal
        finally:
            os._exit(127)
    terminal = Terminal(pid, descriptor, columns, lines)
    try:
        yield terminal
    finally:
        terminal.close()
