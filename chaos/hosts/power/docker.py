"""Power of a container, such as a kind node: the engine starts and kills it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from chaos.hosts.driver import PowerDriver
from chaos.hosts.transports.containers import Container, container_of
from chaos.model.command import PowerState
from chaos.model.driver import PowerSettings
from chaos.model.field_types import ContainerEngine, ContainerName
from chaos.model.ports import ON_OFF_STATE


class DockerPower(PowerSettings):
    kind: Literal["docker"]
    container: ContainerName | None = Field(None, description="name or ID; default: the Node's name")
    engine: ContainerEngine | None = Field(None, description="default: docker where it is installed, else podman")


class DockerControl:
    """Implements ``chaos.model.ports.PowerControl`` and ``RestartPolicyControl``.

    A restart policy would start the container again: actions that need it down disable the policy first and record the
    former one in the journal.
    """

    capabilities = ON_OFF_STATE

    def __init__(self, container: Container) -> None:
        self._container = container

    def state(self) -> PowerState:
        """``on`` or ``off``; ``off`` between an exit and a restart by the policy."""
        return self._container.state()

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
)
