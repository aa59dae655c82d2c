"""The host's memory."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class Memory(HostFact):
    """``{"total": BYTES, "available": BYTES}``; available as the kubelet counts it: free, and cached but not in use."""

    name = "memory"
    summary = "memory of the host, and what of it is available"
    command = HostCommand(("cat", "/proc/meminfo"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, int]:
        found = {name: int(kib) * 1024 for name, kib in re.findall(r"^(\S+):\s+(\d+) kB$", stdout, re.MULTILINE)}
        if exit_code or not {"MemTotal", "MemFree", "Inactive(file)"} <= found.keys():
            raise ValueError("the kernel does not tell")
        return {"total": found["MemTotal"], "available": found["MemFree"] + found["Inactive(file)"]}


FACT = Memory()
