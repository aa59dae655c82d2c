"""Machine ID, by which nodefall recognises the machine that it runs on."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class MachineId(HostFact):
    """Text: 32 hexadecimal digits."""

    name = "machine-id"
    summary = "identity of the installation"
    command = HostCommand(("cat", "/etc/machine-id"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        machine_id = stdout.strip()
        if exit_code or not machine_id:
            raise ValueError("no machine ID")
        return machine_id


FACT = MachineId()
