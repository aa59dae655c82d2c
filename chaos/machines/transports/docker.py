"""Containers, by docker or podman, and the transport into them by ``docker exec``, for nodes without sshd.

DOCKER_HOST and contexts apply as on the command line. Each command is armed first: it waits in the container for one
line. Before that line is sent nothing has run, so that "not sent" is certain. The exit code is the one printed by the
shell in the container: the exit code of the engine's program may be an error of the engine.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from threading import Lock
from time import monotonic

import msgspec
from msgspec import Struct

from chaos.core.command import HostCommand, PowerState
from chaos.core.errors import AnotherMachine, NodefallError, Refused, Unreachable
from chaos.core.programs import TooMuchOutput, run_bounded
from chaos.machines.driver import HostContext, SharedObjects, TransportDriver
from chaos.machines.sessions.arming import ArmedCommand, ArmingSession
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.sessions.local_process import LocalProcess
from chaos.machines.sessions.process import ExitReason
from chaos.machines.sessions.script import armed_argv, draw_mark

ENGINES = ("docker", "podman")
TIMEOUT = 30.0  # seconds of wall time for one call
_FORMAT = (
    '{"id":{{json .Id}},"status":{{json .State.Status}},"policy":{{json .HostConfig.RestartPolicy.Name}},'
    '"retries":{{json .HostConfig.RestartPolicy.MaximumRetryCount}}}'
)
# Between an exit and a restart a container is off; a paused one is on.
_STATES = {
    **dict.fromkeys(("running", "paused", "stopping"), PowerState.ON),
    **dict.fromkeys(
        ("created", "configured", "initialized", "exited", "stopped", "dead", "restarting"), PowerState.OFF
    ),
}
_MAX_OUTPUT = 4 << 20  # bytes of one call
READY_TIMEOUT = 15.0  # seconds of wall time until the shell in the container is ready


class ContainerState(Struct, frozen=True):
    """State of a container as reported by its engine."""

    id: str
    status: str
    policy: str
    retries: int

    @property
    def power(self) -> PowerState | None:
        """The power state, None for an unknown status."""
        return _STATES.get(self.status)

    @property
    def restart_policy(self) -> str:
        """Restart policy as ``update --restart`` accepts it."""
        limit = f":{self.retries}" if self.policy == "on-failure" and self.retries else ""
        return (self.policy or "no") + limit


def find_engine(engine: str | None, which: Callable[[str], str | None] = shutil.which) -> str:
    """Name of the program: ``engine``, else the first installed one. Raises Refused."""
    for name in (engine,) if engine else ENGINES:
        if which(name):
            return name
    names = engine or " nor ".join(ENGINES)
    raise Refused(f"program {names} is not installed", hint="install it, or set engine in the inventory")


class Container:
    """One container, known by its ID from the first :meth:`inspect` on: a recreated one is another host.

    Thread safe.
    """

    def __init__(self, name: str, engine: str, timeout: float = TIMEOUT) -> None:
        self.name, self.engine = name, engine
        self._timeout = timeout
        self._id = ""
        self._lock = Lock()

    def inspect_as(self, template: str) -> bytes:
        """Description by a Go template. Raises Unreachable, or Refused if the container does not exist."""
        return self._run_engine("inspect", "--type", "container", "--format", template, "--", self.name)

    def inspect(self) -> ContainerState:
        """Read the present state. Raises Unreachable, or Refused if the container does not exist or was recreated."""
        output = self.inspect_as(_FORMAT)
        try:
            state = msgspec.json.decode(output, type=ContainerState)
        except msgspec.DecodeError as error:
            raise NodefallError(f"{self.engine} inspect {self.name} cannot be parsed: {error}") from error
        with self._lock:
            self._id = self._id or state.id
            if state.id != self._id:
                raise AnotherMachine(
                    f"container {self.name} was recreated: its ID was {self._id[:12]} and is {state.id[:12]}",
                    hint="plan again: it is a different host now",
                )
        return state

    def state(self) -> PowerState:
        """The power state. Raises NodefallError for an unknown status."""
        state = self.inspect()
        if not state.power:
            raise NodefallError(
                f"{self.engine} reports {self.name} as {state.status!r}", hint=f"check {self.engine} ps -a"
            )
        return state.power

    def run(self, *arguments: str) -> None:
        """Run ``docker ARGUMENTS ID``. Raises Unreachable if nothing was sent, NodefallError if the command failed."""
        self._run_engine(*arguments, self.inspect().id)

    def _run_engine(self, *arguments: str) -> bytes:
        what = f"{self.engine} {arguments[0]} {self.name}"
        try:
            completed = run_bounded([self.engine, *arguments], self._timeout, _MAX_OUTPUT)
        except subprocess.TimeoutExpired as error:
            raise NodefallError(f"{what} timed out after {self._timeout:g} s", hint="check its daemon") from error
        except TooMuchOutput as error:
            raise NodefallError(f"{what} failed: {error}", hint="check its daemon") from error
        except OSError as error:
            raise Unreachable(
                f"{self.engine} cannot be run: {error.strerror}", hint="check engine in the inventory"
            ) from error
        if completed.returncode == 0:
            return completed.stdout
        raise engine_error(what, completed.stderr.decode("utf-8", "replace"))


def container_of(shared: SharedObjects, name: str, engine: str | None) -> Container:
    """The container of that name. Transport and power share one object, because it remembers the container's ID."""
    return shared.get(("container", name, engine), lambda: Container(name, find_engine(engine)))


def engine_error(what: str, stderr: str) -> NodefallError:
    """Error for a message of docker or podman."""
    message = stderr.strip()[-300:]
    text = message.lower()
    if "cannot connect" in text or "permission denied" in text:
        return Unreachable(f"{what}: {message}", hint="make sure that its daemon runs and permits access (DOCKER_HOST)")
    if "no such" in text:
        return Refused(f"{what}: {message}", hint="check container of the host in the inventory, and `docker ps -a`")
    return NodefallError(f"{what}: {message or 'it failed'}", hint="run it by hand as this user")


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
        """Returns {}: the container's firewall does not see the engine as a peer."""
        return {}

    def arm(self, command: HostCommand) -> ArmedCommand:
        """Start ``command`` waiting in the container. Raises Unreachable, or Refused if the container was recreated."""
        state = self._running()
        mark = draw_mark()
        engine_argv = (self._container.engine, "exec", "--interactive", "--user", "0", state.id)
        deadline = monotonic() + min(self._ready_timeout, command.timeout)
        try:
            process = LocalProcess((*engine_argv, *armed_argv(command.argv, mark)), mark, deadline)
        except (OSError, ValueError) as error:
            raise Unreachable(f"{command} cannot be sent to {self.label}: {error}") from error
        version = process.await_start()
        if version is None:
            is_late = process.wait() is ExitReason.TIMED_OUT
            process.close()
            why = f"no answer within {self._ready_timeout:g} s" if is_late else "it ended and printed nothing"
            raise self._start_error(process.greeting or why)  # errors of runc are on stdout
        return self._armed(command, process, self.label, version)

    def _running(self) -> ContainerState:
        """Raises Unreachable if the container does not run, Refused if it was recreated."""
        state = self._container.inspect()
        self._pin.verify(f"container {state.id}", self.label)
        if state.power is not PowerState.ON:
            raise Unreachable(f"{self.label} does not run: it is {state.status}", hint="power it on")
        return state

    def _start_error(self, message: str) -> NodefallError:
        """Unreachable, whatever the engine reports: nothing has run, so it can be tried again."""
        error = engine_error(f"exec in {self.label}", message)
        return Unreachable(error.message, hint=error.hint)


class DockerTransport(TransportDriver):
    """``docker exec`` or ``podman exec``; commands run as root."""

    name = "docker"

    def open_session(self, host: HostContext) -> DockerSession:
        engine = host.host.engine or host.inventory.defaults.engine
        container = container_of(host.shared, host.host.container or host.node, engine)
        return DockerSession(container, pin=host.pin)


DRIVER = DockerTransport()
