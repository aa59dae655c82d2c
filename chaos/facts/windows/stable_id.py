"""The name by which a machine is recognized after a boot."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.stable_id import MACHINE
from chaos.model.windows import system_program


class StableId(HostFact):
    """Text: ``machine NAME`` with the host name, as the fact machine-id has it."""

    name = "stable-id"
    summary = "what is the same after each boot: the host name"
    command = HostCommand((system_program("hostname"),))

    def parse(self, stdout: str, exit_code: int) -> str:
        name = stdout.strip()
        if exit_code or not name:
            raise ValueError("no host name")
        return f"{MACHINE}{name}"


FACT = StableId()
