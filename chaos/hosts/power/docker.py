"""Power of a container, as of a kind node: the engine starts it and kills it."""

from __future__ import annotations

from chaos.hosts.transports.containers import Container
from chaos.model.ports import ON_OFF_STATE


class DockerControl:
    """Implements ``chaos.model.ports.PowerControl`` and ``Restarts``.

    A restart policy would power it on again by itself: actions that need it down hold the policy off first, and what
    it was stands in the journal.
    """

    capabilities = ON_OFF_STATE

    def __init__(self, container: Container) -> None:
        self._container = container

    def state(self) -> str:
        """``on`` or ``off``; between an end and a restart by the policy it is off."""
        return self._container.state()

    def on(self) -> None:
        """Started; done when its first process runs, not when it has booted."""
        self._container.run("start")

    def off(self) -> None:
        """SIGKILL to all of it."""
        if self.state() == "on":
            self._container.run("kill")

    def restart_policy(self) -> str:
        return self._container.inspect().restart_policy

    def set_restart_policy(self, policy: str) -> None:
        self._container.run("update", f"--restart={policy}")
