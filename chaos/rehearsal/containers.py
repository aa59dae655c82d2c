"""Transport docker and power of kind docker on the machines of a rehearsal, as if each were a container."""

from __future__ import annotations

import msgspec

from chaos.core.errors import NodefallError
from chaos.lab.facade import DirectLab, Machine
from chaos.machines.transports.docker import Container
from chaos.rehearsal.hosts import DirectSession


class DirectContainerSession(DirectSession):
    """Implements ``chaos.core.ports.Session``; the host is known by the ID of its container."""

    def _key(self) -> str:
        return f"container {container_id(self._host.machine)}"


class DirectContainer(Container):
    """A container whose engine is the lab: what ``docker`` would be asked is a call."""

    def __init__(self, lab: DirectLab, node: str) -> None:
        super().__init__(node, "docker")
        self._machine = lab.hosts[node].machine

    def _run_engine(self, *arguments: str) -> bytes:
        match arguments[0]:
            case "inspect":
                return self._describe()
            case "start":
                self._machine.power_on()
            case "kill":
                self._machine.power_off()
            case _:
                raise NodefallError(f"a rehearsal has no docker {arguments[0]}")
        return b""

    def _describe(self) -> bytes:
        """What every template of ``docker inspect`` asks for."""
        is_on = self._machine.state == "on"
        network = {"IPAddress": self._machine.address, "IPPrefixLen": 16} if is_on else {}
        state = {
            "id": container_id(self._machine),
            "name": f"/{self.name}",
            "hostname": self.name,
            "status": "running" if is_on else "exited",
            "policy": "no",
            "retries": 0,
            "networks": {"kind": network},
        }
        return msgspec.json.encode(state)


def container_id(machine: Machine) -> str:
    """The ID that the host reports too; of a machine that reports none, one that every boot has."""
    return machine.container_id or machine.system_uuid.replace("-", "") * 2
