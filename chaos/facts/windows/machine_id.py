"""Name of the machine, which a kubelet on Windows reports as ``machineID``."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import system_program


class MachineId(HostFact):
    """Text: the host name. Windows kubelets report it as the machine ID (winstats, ``GetMachineInfo``)."""

    name = "machine-id"
    summary = "host name, which the kubelet reports as the machine ID"
    command = HostCommand((system_program("hostname"),))

    def parse(self, stdout: str, exit_code: int) -> str:
        name = stdout.strip()
        if exit_code or not name:
            raise ValueError("no host name")
        return name


FACT = MachineId()
