"""Process IDs of the host."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class Pids(HostFact):
    """Mapping ``{"max": 32768, "running": 412}``: threads at most and at present, as counted by the kubelet."""

    name = "pids"
    summary = "limit of process IDs, and those in use"
    command = HostCommand(
        ("cat", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max", "/proc/loadavg"), sudo=False
    )

    def parse(self, stdout: str, exit_code: int) -> dict[str, int]:
        words = stdout.split()
        if exit_code or len(words) != 7 or "/" not in words[5]:
            raise ValueError("the limits in /proc are not understood")
        return {"max": min(int(words[0]), int(words[1])), "running": int(words[5].partition("/")[2])}


FACT = Pids()
