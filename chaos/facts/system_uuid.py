"""UUID of the machine, from its firmware."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class SystemUuid(HostFact):
    """Text: DMI product UUID, which a kubelet reports as ``systemUUID``; unknown where there is no DMI."""

    name = "system-uuid"
    summary = "UUID of the machine (DMI)"
    command = HostCommand(("cat", "/sys/class/dmi/id/product_uuid"))

    def parse(self, stdout: str, exit_code: int) -> str:
        uuid = stdout.strip().lower()
        if exit_code or not uuid:
            raise ValueError("the host has no DMI product UUID")
        return uuid


FACT = SystemUuid()
