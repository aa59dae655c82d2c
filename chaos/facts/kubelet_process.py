"""Process of the kubelet."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# The kubelet, and programs of distributions that contain it.
_NAMES = ("kubelet", "kubelite", "k3s-server", "k3s-agent", "k3s", "k0s")


class KubeletProcess(HostFact):
    """Mapping ``{"pid": 812, "stopped": false}`` of the oldest process, {} without one; stopped: by SIGSTOP."""

    name = "kubelet-process"
    summary = "process ID of the kubelet, and whether it is stopped by a signal"
    command = HostCommand(("ps", "-eo", "pid=,stat=,comm="), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, int | bool]:
        rows = [line.split(None, 2) for line in stdout.splitlines()]
        if exit_code or not rows or any(len(row) != 3 for row in rows):
            raise ValueError("ps did not answer")
        processes = sorted((int(pid), stat) for pid, stat, name in rows if name.strip() in _NAMES)
        return {"pid": processes[0][0], "stopped": processes[0][1].startswith("T")} if processes else {}


FACT = KubeletProcess()
