"""Transport into containers, by ``docker exec`` or ``podman exec``, for nodes without sshd.

Each command is armed first: it waits in the container for one line. Before that line is sent nothing has run, so that
"not sent" is certain. The exit code is the one printed by the shell in the container: the exit code of the engine's
program may be an error of the engine.
"""

from __future__ import annotations

import secrets
from threading import Lock
from time import monotonic

from chaos.core.command import Delivery, HostCommand, Outcome, PowerState
from chaos.core.errors import NodefallError, Unreachable
from chaos.machines.driver import HostContext, TransportDriver
from chaos.machines.host_key_pin import HostKeyPin
from chaos.machines.transports.armed_exec import ArmedExec
from chaos.machines.transports.containers import Container, ContainerState, container_of, engine_error
from chaos.machines.transports.host_clock import HostClock
from chaos.machines.transports.local_process import LocalProcess
from chaos.machines.transports.script import exit_code_argv, has_host_clock, is_ready

READY_TIMEOUT = 15.0  # seconds of wall time until the shell in the container is ready


class DockerSession:
    """Thread safe; implements ``chaos.core.ports.Session`` and ``RelayedSession``.

    Commands run as root; each is a separate exec.
    """

    def __init__(
        self, container: Container, ready_timeout: float = READY_TIMEOUT, pin: HostKeyPin | None = None
    ) -> None:
        self._container, self._ready_timeout, self._pin = container, ready_timeout, pin or HostKeyPin()
        self._processes: list[LocalProcess] = []
        self._lock = Lock()

    @property
    def label(self) -> str:
        return f"{self._container.engine} container {self._container.name}"

    def connect(self) -> None:
        """Verify that the container runs and was not recreated. Raises Unreachable, Refused."""
        self._running()

    def peer(self) -> dict[str, str | int]:
        """{}: the engine is no peer that a firewall of the container sees."""
        return {}

    def run(self, command: HostCommand) -> Outcome:
        """Send ``command`` once and wait for its end; failures are in the outcome."""
        try:
            armed = self.arm(command)
        except NodefallError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return Outcome(Delivery.NOT_SENT, error=f"{error.message}{hint}")
        return armed.wait()

    def arm(self, command: HostCommand) -> ArmedExec:
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
        with self._lock:
            self._processes = [each for each in self._processes if not each.closed] + [process]
        return ArmedExec(command, process, HostClock(has_host_clock(first_line)), self.label)

    def _running(self) -> ContainerState:
        """Raises Unreachable if the container does not run, Refused if it was recreated."""
        state = self._container.inspect()
        self._pin.verify(f"container {state.id}", self.label)
        if state.power is not PowerState.ON:
            raise Unreachable(f"{self.label} does not run: it is {state.status}", hint="power it on")
        return state

    def close(self) -> None:
        """Disconnect. Programs that run in the container go on; armed commands end without running."""
        with self._lock:
            for process in self._processes:
                process.kill()

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
