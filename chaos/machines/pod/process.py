"""Input and output of a command in a container, over one stream of the API server."""

from __future__ import annotations

from time import monotonic

from chaos.cluster.exec_stream import ExecStatus, ExecStream
from chaos.machines.transports.channel_io import ExitReason
from chaos.machines.transports.marked_process import MarkedProcess


class ExecProcess(MarkedProcess):
    """Implements ``WaitingProcess``. For one thread; :meth:`kill` is for all.

    The exit code is the one that the shell on the host prints: a process that the command started may have its outputs
    open for ever, and until they close the runtime reports no end.
    """

    def __init__(self, stream: ExecStream, mark: str, deadline: float) -> None:
        super().__init__(mark, deadline)
        self._stream = stream

    @property
    def exit(self) -> int | None:
        """Of the command, None if it is unknown."""
        return self._stderr.exit if self._stdout.exit is None else self._stdout.exit

    @property
    def status(self) -> ExecStatus | None:
        """What the API server has reported of the program's end."""
        return self._stream.status

    @property
    def is_running(self) -> bool:
        if not self.closed and not self._stream.has_ended:
            self._take(0.0)
        return not self.closed and not self._stream.has_ended and self._stream.status is None

    def send(self, line: str) -> None:
        """Write ``line`` at once. Raises OSError if the connection is lost."""
        self._stream.write(line.encode())
        self._stream.flush()

    def write_stdin(self, text: str) -> None:
        """Queue ``text`` and the end of the input; it is written while output is read."""
        self._stream.write(text.encode())
        self._stream.end_input()

    def kill(self) -> None:
        """Break the stream. The command goes on, unless it still waits to be released."""
        self._stream.abort()

    def close(self) -> None:
        """Break the stream and free it. Further calls do nothing."""
        if not self.closed:
            self.closed = True
            self._stream.close()

    def _step(self) -> ExitReason | None:
        """Wait for output and take it; the exit reason, None while the command runs."""
        if self._stdout.is_closed and self._stderr.is_closed:
            return ExitReason.EXITED
        if self._stream.has_ended or (self._stream.status and self._stream.status.error):
            return ExitReason.LOST
        remaining = self._deadline - monotonic()
        if remaining <= 0:
            return ExitReason.TIMED_OUT
        self._take(remaining)
        return None

    def _take(self, timeout: float) -> None:
        for output, data in zip((self._stdout, self._stderr), self._stream.step(timeout), strict=True):
            if data:
                output.append(data)
