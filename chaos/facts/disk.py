"""File system of the kubelet's directory, called nodefs by the kubelet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

ROOT = "/var/lib/kubelet"


class Disk(HostFact):
    """Mapping ``{"root": "/var/lib/kubelet", "total": BYTES, "available": BYTES, "mount": "/"}``."""

    name = "disk"
    summary = "file system of the kubelet's directory, and the available part"
    needs = ("kubelet-flags",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        root = known["kubelet-flags"].get("root-dir", ROOT)
        # The directory is part of the value, so print it too.
        return HostCommand(("sh", "-c", 'echo "$1" && df -P -k "$1"', "nodefall", root))

    def parse(self, stdout: str, exit_code: int) -> dict[str, int | str]:
        lines = stdout.splitlines()
        fields = lines[2].split() if len(lines) == 3 else []
        if exit_code or len(fields) < 6 or not fields[1].isdecimal() or not fields[3].isdecimal():
            raise ValueError("df is not understood")
        total, available = int(fields[1]) * 1024, int(fields[3]) * 1024
        return {"root": lines[0], "total": total, "available": available, "mount": fields[5]}


FACT = Disk()
