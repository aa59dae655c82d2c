"""Containers, through the program docker or podman; DOCKER_HOST and contexts apply as on the command line."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from chaos.core.command import PowerState
from chaos.core.errors import AnotherMachine, NodefallError, Refused, Unreachable

if TYPE_CHECKING:
    from chaos.machines.driver import SharedObjects

ENGINES = ("docker", "podman")
TIMEOUT = 30.0  # seconds of wall time for one call
_FORMAT = (
    '{"id":{{json .Id}},"status":{{json .State.Status}},"policy":{{json .HostConfig.RestartPolicy.Name}},'
    '"retries":{{json .HostConfig.RestartPolicy.MaximumRetryCount}}}'
)
# Between an exit and a restart a container is off; a paused one is on.
_STATES = dict.fromkeys(("running", "paused", "stopping"), PowerState.ON)
_STATES |= dict.fromkeys(
    ("created", "configured", "initialized", "exited", "stopped", "dead", "restarting"), PowerState.OFF
)


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
        """Present state. Raises Unreachable, or Refused if the container does not exist or was recreated."""
        output = self.inspect_as(_FORMAT)
        try:
            state = msgspec.json.decode(output, type=ContainerState)
        except msgspec.DecodeError as error:
            raise NodefallError(f"{self.engine} inspect {self.name} is not understood: {error}") from error
        with self._lock:
            self._id = self._id or state.id
            if state.id != self._id:
                raise AnotherMachine(
                    f"container {self.name} was recreated: its ID was {self._id[:12]} and is {state.id[:12]}",
                    hint="plan again: it is another host now",
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
            completed = subprocess.run(
                [self.engine, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._timeout,
                check=False,
                start_new_session=True,  # Ctrl-C is for nodefall alone: the program runs to its end
            )
        except subprocess.TimeoutExpired as error:
            raise NodefallError(f"{what} timed out after {self._timeout:g} s", hint="check its daemon") from error
        except OSError as error:
            raise Unreachable(
                f"{self.engine} cannot be run: {error.strerror}", hint="check engine in the inventory"
            ) from error
        if completed.returncode == 0:
            return completed.stdout
        raise engine_error(what, completed.stderr.decode("utf-8", "replace"))


def container_of(shared: SharedObjects, name: str, engine: str | None) -> Container:
    """The container of that name; one object for transport and power, as it remembers the container's ID."""
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
