"""Input and output of a program on an SSH channel."""

from __future__ import annotations

import select
from collections.abc import Callable
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

from chaos.machines.sessions.process import ExitReason, Process
from chaos.machines.transports.connection import close_quietly

if TYPE_CHECKING:
    from paramiko import Channel, Transport

_CHUNK = 1 << 16
_POLL_INTERVAL = 0.25  # seconds, the longest time until an exit is noticed
_SHUTDOWN_GRACE = 0.2  # seconds for a broken transport's thread to notice


class ChannelProcess(Process):
    """A program on a channel. Closing it closes the channel and calls ``release_slot``, once."""

    def __init__(
        self, channel: Channel, transport: Transport, mark: str, deadline: float, release_slot: Callable[[], None]
    ) -> None:
        super().__init__(mark, deadline)
        self._channel, self._transport, self._release_slot = channel, transport, release_slot
        self._is_framed = bool(mark)

    @property
    def channel_exit(self) -> int | None:
        """The exit code of the login shell's command; None while it is unknown."""
        return None if self._channel.exit_status == -1 else self._channel.exit_status

    @property
    def exit(self) -> int | None:
        return super().exit if self._is_framed else self.channel_exit

    @property
    def is_running(self) -> bool:
        return not self.closed and not self._channel.exit_status_ready()

    def send(self, line: str) -> None:
        self._channel.sendall(line.encode())

    def kill(self) -> None:
        close_quietly(self._channel.close)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            close_quietly(self._channel.close)
            self._release_slot()

    def write_stdin(self, text: str) -> None:
        """Send ``text`` and end of file from a thread, as the program may write before it has read everything."""
        if text:
            Thread(target=self._write_stdin, args=(text.encode(),), daemon=True).start()
        else:
            self._write_stdin(b"")

    def _step(self) -> ExitReason | None:
        """Wait once, briefly, and read; the exit reason, None while the program runs."""
        if self._stdout.exit is not None and self._stderr.exit is not None:
            return ExitReason.EXITED
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
            self._stdout.append(self._channel.recv(_CHUNK))
            has_read = True
        while self._channel.recv_stderr_ready():
            self._stderr.append(self._channel.recv_stderr(_CHUNK))
            has_read = True
        return has_read

    def _exit_reason(self) -> ExitReason:
        """The exit reason. Paramiko drops exit-signal, so a channel closed without an exit status means a signal."""
        if self.channel_exit is not None:
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
