"""Input and output of a program on an SSH channel, with a limit on output."""

from __future__ import annotations

import select
from enum import Enum
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramiko import Channel, Transport

LIMIT = 1 << 20  # bytes of stdout, and of stderr, that are stored
_CHUNK = 1 << 16
_POLL_INTERVAL = 0.25  # seconds, the longest time until an exit is noticed
_SHUTDOWN_GRACE = 0.2  # seconds for a broken transport's thread to notice


class ExitReason(Enum):
    """EXITED: with an exit status. KILLED: by a signal. LOST: the connection broke. TIMED_OUT: at the deadline."""

    EXITED = "exited"
    KILLED = "killed"
    LOST = "lost"
    TIMED_OUT = "late"


class ChannelProcess:
    """A program on a channel; ``deadline`` is a time of time.monotonic."""

    def __init__(self, channel: Channel, transport: Transport, deadline: float) -> None:
        self._channel, self._transport, self._deadline = channel, transport, deadline
        self._stdout, self._stderr = bytearray(), bytearray()
        self._truncated: list[str] = []

    @property
    def stdout(self) -> str:
        return self._stdout.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self._stderr.decode("utf-8", "replace")

    @property
    def note(self) -> str:
        """Which outputs were truncated, "" if none was."""
        return f"{' and '.join(self._truncated)} truncated at 1 MiB" if self._truncated else ""

    def extend(self, deadline: float) -> None:
        """Set a new deadline."""
        self._deadline = deadline

    def write_stdin(self, text: str) -> None:
        """Send ``text`` and end of file from a thread, as the program may write before it has read everything."""
        if text:
            Thread(target=self._write_stdin, args=(text.encode(),), daemon=True).start()
        else:
            self._write_stdin(b"")

    def read_line(self) -> str | None:
        """Remove and return the first line of stdout; None if the program ends or times out before it has one."""
        while b"\n" not in self._stdout:
            if self._step() is not None:
                break
        line, newline, rest = bytes(self._stdout).partition(b"\n")
        if not newline:
            return None
        self._stdout[:] = rest
        return line.decode("utf-8", "replace")

    def wait(self) -> ExitReason:
        """Read until the program has ended."""
        while (reason := self._step()) is None:
            pass
        return reason

    def _step(self) -> ExitReason | None:
        """Wait once, briefly, and read; the exit reason, None while the program runs."""
        remaining = min(self._deadline - monotonic(), _POLL_INTERVAL)
        if remaining <= 0:
            return ExitReason.TIMED_OUT
        at_end = self._channel.eof_received or self._channel.closed
        exited = self._channel.exit_status_ready()
        if self._drain():
            return None
        if at_end and exited:
            return self._exit_reason()
        if at_end:
            self._channel.status_event.wait(remaining)
            return None
        poll = select.poll()
        poll.register(self._channel.fileno(), select.POLLIN)
        is_quiet = not poll.poll(remaining * 1000)
        # The program has exited, but a process that it started still has its output open.
        return self._exit_reason() if is_quiet and exited else None

    def _drain(self) -> bool:
        has_read = False
        while self._channel.recv_ready():
            self._append(self._stdout, self._channel.recv(_CHUNK), "stdout")
            has_read = True
        while self._channel.recv_stderr_ready():
            self._append(self._stderr, self._channel.recv_stderr(_CHUNK), "stderr")
            has_read = True
        return has_read

    def _append(self, buffer: bytearray, data: bytes, name: str) -> None:
        room = LIMIT - len(buffer)
        buffer += data[:room]
        if len(data) > room and name not in self._truncated:
            self._truncated.append(name)

    def _exit_reason(self) -> ExitReason:
        """Paramiko drops exit-signal: a channel that the host closes without an exit status was one."""
        if self._channel.exit_status != -1:
            return ExitReason.EXITED
        return ExitReason.LOST if is_disconnected(self._transport) else ExitReason.KILLED

    def _write_stdin(self, data: bytes) -> None:
        try:
            if data:
                self._channel.settimeout(max(self._deadline - monotonic(), _POLL_INTERVAL))
                self._channel.sendall(data)
            self._channel.shutdown_write()
        except (OSError, EOFError):
            return  # the program ended without reading on, or the connection is lost: wait() returns which


def is_disconnected(transport: Transport) -> bool:
    """True if the connection is down. Its thread closes the channels a moment before it becomes inactive."""
    transport.join(_SHUTDOWN_GRACE)
    return not transport.is_active()
