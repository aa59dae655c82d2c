"""Swap of the host."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class Swap(HostFact):
    """Whole number: bytes, 0 if swap is off."""

    name = "swap"
    summary = "swap of the host, in bytes"
    command = HostCommand(("cat", "/proc/swaps"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> int:
        head, *rows = stdout.splitlines() or [""]
        if exit_code or not head.startswith("Filename"):
            raise ValueError("/proc/swaps is not understood")
        return sum(int(row.split()[2]) * 1024 for row in rows)


FACT = Swap()
