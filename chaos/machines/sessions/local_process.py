"""A program of this machine that runs a command on a host, as docker exec and ssh do."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Sequence
from threading import Thread
from time import monotonic

from chaos.machines.sessions.process import ExitReason, Process

_CHUNK = 1 << 16


class LocalProcess(Process):
    """A program that runs another one on a host. For one thread; :meth:`kill` is for all.

    Without an end mark the inner program's result is unknown, regardless of the outer program's exit code.
    """

    def __init__(self, argv: Sequence[str], mark: str, deadline: float) -> None:
        """Raises OSError if the program cannot be started."""
        self._process = process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._stdin, *pipes = [p for p in (process.stdin, process.stdout, process.stderr) if p]
        super().__init__(mark, deadline)
        self._streams = dict(zip([pipe.fileno() for pipe in pipes], (self._stdout, self._stderr), strict=True))
        self._pipes = pipes

    def await_exit(self, seconds: float) -> int | None:
        """Exit code of the outer program, None if it runs for longer."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    @property
    def is_running(self) -> bool:
        return not self.closed and self._process.poll() is None

    def send(self, line: str) -> None:
        """Write ``line`` immediately. Raises OSError if the program has ended."""
        os.write(self._stdin.fileno(), line.encode())

    def write_stdin(self, text: str) -> None:
        """Send ``text`` and end of file from a thread, as the program may write before it has read everything."""
        Thread(target=self._write_stdin, args=(text.encode(),), daemon=True).start()

    def kill(self) -> None:
        """Kill the outer program. The inner one may continue."""
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

        A process started by the inner program may keep the outputs open forever, so the mark ends them."""
        open_fds = [fd for fd, stream in self._streams.items() if not stream.is_closed]
        if not open_fds:
            return ExitReason.LOST if self.exit is None else ExitReason.EXITED
        remaining = self._deadline - monotonic()
        if remaining <= 0:
            return ExitReason.TIMED_OUT
        poll = select.poll()  # select() refuses file descriptors from 1024 on
        for fd in open_fds:
            poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll(remaining * 1000):
            self._streams[fd].append(os.read(fd, _CHUNK))
        return None

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
