"""Transport into containers, by ``docker exec`` or ``podman exec``, for nodes without sshd.

Each command is armed first: it waits in the container for one line. Before that line is sent nothing has run, so that
"not sent" is certain. The exit code is the one printed by the shell in the container: the exit code of the engine's
program may be an error of the engine.
"""

from __future__ import annotations

import os
import secrets
import select
import subprocess
from collections.abc import Sequence
from threading import Thread
from time import monotonic

from chaos.core.command import HostCommand, PowerState
from chaos.core.errors import NodefallError, Unreachable
from chaos.machines.driver import HostContext, TransportDriver
from chaos.machines.transports.containers import Container, ContainerState, container_of, engine_error
from chaos.machines.transports.host_keys import HostKeyPin
from chaos.machines.transports.process import ExitReason, MarkedProcess
from chaos.machines.transports.script import exit_code_argv, is_ready
from chaos.machines.transports.sessions import ArmedCommand, ArmingSession

_CHUNK = 1 << 16
READY_TIMEOUT = 15.0  # seconds of wall time until the shell in the container is ready


class LocalProcess(MarkedProcess):
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
        super().__init__(mark, deadline)
        outputs = (self._stdout, self._stderr)
        self._streams = {pipe.fileno(): output for pipe, output in zip(pipes, outputs, strict=True)}
        self._pipes = pipes

    @property
    def exit(self) -> int | None:
        """Of the inner program, None if it is unknown."""
        codes = [stream.exit for stream in self._streams.values() if stream.exit is not None]
        return codes[-1] if codes else None

    @property
    def is_running(self) -> bool:
        return not self.closed and self._process.poll() is None

    def send(self, line: str) -> None:
        """Write ``line`` at once. Raises OSError if the program has ended."""
        os.write(self._stdin.fileno(), line.encode())

    def write_stdin(self, text: str) -> None:
        """Send ``text`` and end of file from a thread, as the program may write before it has read everything."""
        Thread(target=self._write_stdin, args=(text.encode(),), daemon=True).start()

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


class DockerSession(ArmingSession):
    """Thread safe; implements ``chaos.core.ports.Session`` and ``RelayedSession``.

    Commands run as root; each is a separate exec.
    """

    def __init__(
        self, container: Container, ready_timeout: float = READY_TIMEOUT, pin: HostKeyPin | None = None
    ) -> None:
        super().__init__(pin, ready_timeout)
        self._container = container

    @property
    def label(self) -> str:
        return f"{self._container.engine} container {self._container.name}"

    def connect(self) -> None:
        """Verify that the container runs and was not recreated. Raises Unreachable, Refused."""
        self._running()

    def peer(self) -> dict[str, str | int]:
        """{}: the engine is no peer that a firewall of the container sees."""
        return {}

    def arm(self, command: HostCommand) -> ArmedCommand:
        """Start ``command`` waiting in the container. Raises Unreachable, or Refused if the container was recreated."""
        state = self._running()
        mark = f"nodefall-{secrets.token_hex(8)}"
        engine_argv = (self._container.engine, "exec", "--interactive", "--user", "0", state.id)
        deadline = monotonic() + min(self._ready_timeout, command.timeout)
        try:
            process = LocalProcess((*engine_argv, *exit_code_argv(command.argv, mark)), mark, deadline)
        except (OSError, ValueError) as error:
            raise Unreachable(f"{command} cannot be sent to {self.label}: {error}") from error
        first_line = process.read_line()
        if not is_ready(first_line):
            process.wait()
            process.close()
            raise self._start_error(process.stderr or first_line or "")  # errors of runc are on stdout
        return self._armed(command, process, self.label, first_line)

    def _running(self) -> ContainerState:
        """Raises Unreachable if the container does not run, Refused if it was recreated."""
        state = self._container.inspect()
        self._pin.verify(f"container {state.id}", self.label)
        if state.power is not PowerState.ON:
            raise Unreachable(f"{self.label} does not run: it is {state.status}", hint="power it on")
        return state

    def _start_error(self, message: str) -> NodefallError:
        """Unreachable, whatever the engine reports: nothing has run, so it can be tried again."""
        error = engine_error(f"exec in {self.label}", message or f"no answer within {self._ready_timeout:g} s")
        return Unreachable(error.message, hint=error.hint)


class DockerTransport(TransportDriver):
    """``docker exec`` or ``podman exec``; commands run as root."""

    name = "docker"

    def open_session(self, host: HostContext) -> DockerSession:
        engine = host.host.engine or host.inventory.defaults.engine
        container = container_of(host.shared, host.host.container or host.node, engine)
        return DockerSession(container, pin=host.pin)


DRIVER = DockerTransport()
