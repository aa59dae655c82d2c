"""Power of a container, such as a kind node: the engine starts and kills it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Struct, field
from pydantic import Field

from chaos.core.command import PowerState
from chaos.core.driver import PowerSettings
from chaos.core.errors import NodefallError
from chaos.core.field_types import ContainerEngine, ContainerName
from chaos.core.ports import ON_OFF_STATE
from chaos.core.power_identity import PowerIdentity
from chaos.machines.driver import PowerDriver
from chaos.machines.transports.docker import Container, container_of

_IDENTITY = (
    '{"id":{{json .Id}},"name":{{json .Name}},"hostname":{{json .Config.Hostname}},'
    '"networks":{{json .NetworkSettings.Networks}}}'
)


class DockerPower(PowerSettings):
    kind: Literal["docker"] = Field(description="A container of docker or podman.")
    container: ContainerName | None = Field(
        None, description="The name or ID of the container. By default, the Node's name."
    )
    engine: ContainerEngine | None = Field(
        None, description="The engine. By default, docker if it is installed, otherwise podman."
    )

    @property
    def names_machine(self) -> bool:
        return bool(self.container or self.identity)  # else the Node's name is that of the container


class _Network(Struct):
    ipv4: str | None = field(default=None, name="IPAddress")
    ipv6: str | None = field(default=None, name="GlobalIPv6Address")
    ipv4_prefix: int = field(default=0, name="IPPrefixLen")
    ipv6_prefix: int = field(default=0, name="GlobalIPv6PrefixLen")

    def interfaces(self) -> Iterator[str]:
        """The addresses with their networks. The engine reports an empty address if there is none."""
        for address, prefix in ((self.ipv4, self.ipv4_prefix), (self.ipv6, self.ipv6_prefix)):
            if address:
                yield f"{address}/{prefix}" if prefix else address


class _Identity(Struct):
    id: str
    name: str
    hostname: str
    networks: dict[str, _Network] | None


class DockerControl:
    """Implements ``PowerControl``, ``RestartPolicyControl``, ``MachineIdentity`` and ``MachineAddresses`` of the ports.

    A restart policy would start the container again: actions that need it down disable the policy first and record the
    former one in the journal.
    """

    capabilities = ON_OFF_STATE

    def __init__(self, container: Container) -> None:
        self._container = container

    def state(self) -> PowerState:
        """``on`` or ``off``; ``off`` between an exit and a restart by the policy."""
        return self._container.state()

    def identity(self) -> PowerIdentity:
        """The container's ID, name, host name and present addresses."""
        found = self._inspect()
        names = (found.name.removeprefix("/"), found.hostname)
        addresses = [text for each in (found.networks or {}).values() for text in (each.ipv4, each.ipv6)]
        return PowerIdentity("", tuple(filter(None, names)), tuple(filter(None, addresses)), found.id)

    def interfaces(self) -> tuple[str, ...]:
        """The container's present addresses with their networks."""
        networks = self._inspect().networks or {}
        return tuple(text for network in networks.values() for text in network.interfaces())

    def _inspect(self) -> _Identity:
        output = self._container.inspect_as(_IDENTITY)
        try:
            return msgspec.json.decode(output, type=_Identity)
        except msgspec.DecodeError as error:
            raise NodefallError(f"inspect {self._container.name} cannot be parsed: {error}") from error

    def on(self) -> None:
        """Start the container; returns when its first process runs, not when it has booted."""
        self._container.run("start")

    def off(self) -> None:
        """Send SIGKILL to all processes of the container."""
        if self.state() is PowerState.ON:
            self._container.run("kill")

    def restart_policy(self) -> str:
        return self._container.inspect().restart_policy

    def set_restart_policy(self, policy: str) -> None:
        self._container.run("update", f"--restart={policy}")


DRIVER = PowerDriver(
    "docker",
    DockerPower,
    lambda power, host: DockerControl(
        container_of(host.shared, power.container or host.host.container or host.node, power.engine)
    ),
    moves=True,
)
