"""One container, by the program docker or podman; DOCKER_HOST and contexts count as they do on the command line."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from chaos.model.errors import NodefallError, Refused, Unreachable

if TYPE_CHECKING:
    from chaos.hosts.driver import SharedObjects

ENGINES = ("docker", "podman")
TIMEOUT = 30.0  # seconds of wall time for one answer
_FORMAT = (
    '{"id":{{json .Id}},"status":{{json .State.Status}},"policy":{{json .HostConfig.RestartPolicy.Name}},'
    '"retries":{{json .HostConfig.RestartPolicy.MaximumRetryCount}}}'
)
# Between an end and a restart it is off; frozen it is on.
_STATES = {"running": "on", "paused": "on", "stopping": "on"}
_STATES |= dict.fromkeys(("created", "configured", "initialized", "exited", "stopped", "dead", "restarting"), "off")


class ContainerState(Struct, frozen=True):
    """A container as its engine sees it now."""

    id: str
    status: str
    policy: str
    retries: int

    @property
    def power(self) -> str:
        """``on``, ``off``, or "" for a status that says neither."""
        return _STATES.get(self.status, "")

    @property
    def restart_policy(self) -> str:
        """As ``update --restart`` takes it."""
        limit = f":{self.retries}" if self.policy == "on-failure" and self.retries else ""
        return (self.policy or "no") + limit


def find_engine(wanted: str | None, which: Callable[[str], str | None] = shutil.which) -> str:
    """The program. Raises Refused if it is not installed."""
    for name in (wanted,) if wanted else ENGINES:
        if which(name):
            return name
    names = wanted or " nor ".join(ENGINES)
    raise Refused(f"there is no program {names} here", hint="install it, or see engine in the inventory")


class Container:
    """Thread safe. Known by its ID from the first look on: one that was made anew is another host."""

    def __init__(self, name: str, engine: str, timeout: float = TIMEOUT) -> None:
        self.name, self.engine = name, engine
        self._timeout = timeout
        self._id = ""
        self._lock = Lock()

    def inspect(self) -> ContainerState:
        """As it is now. Raises Unreachable, or Refused if there is none, or not the same."""
        done = self._run_engine("inspect", "--type", "container", "--format", _FORMAT, "--", self.name)
        try:
            seen = msgspec.json.decode(done, type=ContainerState)
        except msgspec.DecodeError as error:
            raise NodefallError(f"{self.engine} inspect {self.name} is not understood: {error}") from error
        with self._lock:
            self._id = self._id or seen.id
            if seen.id != self._id:
                raise Refused(
                    f"container {self.name} was made anew: its ID was {self._id[:12]} and is {seen.id[:12]}",
                    hint="it is another host now; plan again",
                )
        return seen

    def state(self) -> str:
        """``on`` or ``off``. Raises NodefallError where the engine says neither."""
        seen = self.inspect()
        if not seen.power:
            raise NodefallError(
                f"{self.engine} says that {self.name} is {seen.status!r}", hint=f"see {self.engine} ps -a"
            )
        return seen.power

    def run(self, *arguments: str) -> None:
        """``docker ARGUMENTS ID``. Raises Unreachable where nothing was sent, NodefallError where it failed."""
        self._run_engine(*arguments, self.inspect().id)

    def _run_engine(self, *arguments: str) -> bytes:
        what = f"{self.engine} {arguments[0]} {self.name}"
        try:
            done = subprocess.run(
                [self.engine, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._timeout,
                check=False,
                start_new_session=True,  # Ctrl-C is for us: what was begun ends
            )
        except subprocess.TimeoutExpired as error:
            raise NodefallError(f"{what} gave no answer in {self._timeout:g} s", hint="see its daemon") from error
        except OSError as error:
            raise Unreachable(f"{self.engine} cannot be run: {error.strerror}", hint="see engine") from error
        if done.returncode == 0:
            return done.stdout
        raise engine_error(what, done.stderr.decode("utf-8", "replace"))


def container_of(shared: SharedObjects, name: str, engine: str | None) -> Container:
    """The container of that name; one object for transport and power, as it remembers the container's ID."""
    return shared.get(("container", name, engine), lambda: Container(name, find_engine(engine)))


def engine_error(what: str, stderr: str) -> NodefallError:
    """What docker's or podman's own words mean."""
    said = stderr.strip()[-300:]
    words = said.lower()
    if "cannot connect" in words or "permission denied" in words:
        return Unreachable(f"{what}: {said}", hint="see that its daemon runs and that you may use it (DOCKER_HOST)")
    if "no such" in words:
        return Refused(f"{what}: {said}", hint="see container of the host in the inventory, and `docker ps -a`")
    return NodefallError(f"{what}: {said or 'it failed'}", hint="run it by hand, as this user")
