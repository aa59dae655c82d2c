"""One program on one channel: input, output within limits, and how it ended."""

from __future__ import annotations

import select
from enum import Enum
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramiko import Channel, Transport

LIMIT = 1 << 20  # bytes kept of stdout, and of stderr
_CHUNK = 1 << 16
_POLL_INTERVAL = 0.25  # seconds; the longest time in which an end may go unnoticed
_SHUTDOWN_GRACE = 0.2  # seconds for a broken transport's thread to notice


class ExitReason(Enum):
    """EXITED: an exit status came. KILLED: by a signal. LOST: the line went first. LATE: the time was up."""

    EXITED = "exited"
    KILLED = "killed"
    LOST = "lost"
    TIMED_OUT = "late"


class ChannelProcess:
    """Reads a channel; ``deadline`` in time.monotonic."""

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
        """Says what was cut, "" if nothing was."""
        return f"{' and '.join(self._truncated)} cut at 1 MiB" if self._truncated else ""

    def extend(self, deadline: float) -> None:
        """From now on wait until ``deadline``."""
        self._deadline = deadline

    def write_stdin(self, text: str) -> None:
        """Send ``text`` and the end of file, from a thread, as the program may answer before it has read all."""
        if text:
            Thread(target=self._write_stdin, args=(text.encode(),), daemon=True).start()
        else:
            self._write_stdin(b"")

    def read_line(self) -> str | None:
        """Take the first line of stdout as soon as it is there; None if the program ends, or time is up, before."""
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
        while (ended := self._step()) is None:
            pass
        return ended

    def _step(self) -> ExitReason | None:
        """Wait once, shortly, and read; how it ended, or None."""
        left = min(self._deadline - monotonic(), _POLL_INTERVAL)
        if left <= 0:
            return ExitReason.TIMED_OUT
        ended = self._channel.eof_received or self._channel.closed
        exited = self._channel.exit_status_ready()
        if self._drain():
            return None
        if ended and exited:
            return self._exit_reason()
        if ended:
            self._channel.status_event.wait(left)
            return None
        poll = select.poll()
        poll.register(self._channel.fileno(), select.POLLIN)
        quiet = not poll.poll(left * 1000)
        # It has exited, yet something that it left behind holds its output open.
        return self._exit_reason() if quiet and exited else None

    def _drain(self) -> bool:
        found = False
        while self._channel.recv_ready():
            self._append(self._stdout, self._channel.recv(_CHUNK), "stdout")
            found = True
        while self._channel.recv_stderr_ready():
            self._append(self._stderr, self._channel.recv_stderr(_CHUNK), "stderr")
            found = True
        return found

    def _append(self, buffer: bytearray, data: bytes, name: str) -> None:
        room = LIMIT - len(buffer)
        buffer += data[:room]
        if len(data) > room and name not in self._truncated:
            self._truncated.append(name)

    def _exit_reason(self) -> ExitReason:
        """Paramiko drops exit-signal: a channel closed by the host without a status is one."""
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
            return  # it ended without reading on, or the line is lost: the exchange tells which


def is_disconnected(transport: Transport) -> bool:
    """True if the line is down; its thread closes the channels a moment before it says so."""
    transport.join(_SHUTDOWN_GRACE)
    return not transport.is_active()
