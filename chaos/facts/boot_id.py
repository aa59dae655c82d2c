"""Boot ID of the kernel; a container has that of its host."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class BootId(HostFact):
    """Text: a UUID in lower case."""

    name = "boot-id"
    summary = "boot ID of the kernel"
    command = HostCommand(("cat", "/proc/sys/kernel/random/boot_id"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        boot_id = stdout.strip()
        if exit_code or not boot_id:
            raise ValueError("no boot ID")
        return boot_id


FACT = BootId()
