"""Memory of the host."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class Memory(HostFact):
    """Mapping ``{"total": BYTES, "available": BYTES}``; available by the kubelet's count: free, inactive file cache."""

    name = "memory"
    summary = "memory of the host, and the available part"
    command = HostCommand(("cat", "/proc/meminfo"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, int]:
        values = {name: int(kib) * 1024 for name, kib in re.findall(r"^(\S+):\s+(\d+) kB$", stdout, re.MULTILINE)}
        if exit_code or not {"MemTotal", "MemFree", "Inactive(file)"} <= values.keys():
            raise ValueError("/proc/meminfo is not understood")
        return {"total": values["MemTotal"], "available": values["MemFree"] + values["Inactive(file)"]}


FACT = Memory()
