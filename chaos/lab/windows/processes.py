"""Processes of a Windows machine: those of its services, and the kubelet under a service wrapper."""

from __future__ import annotations

import ntpath
from typing import NamedTuple

from chaos.lab.windows.builtin import kubelet_command
from chaos.lab.windows.machine import KUBELET, WindowsMachine
from chaos.lab.windows.services import STOPPED

_CHILD = 2  # invented: what a wrapper's PID is less than that of its program


class WindowsProcess(NamedTuple):
    """``started_at``: by the machine's clock, in epoch seconds."""

    pid: int
    image: str
    command_line: str
    started_at: float

    @property
    def name(self) -> str:
        """The image without .exe."""
        return self.image.removesuffix(".exe")


def list_processes(machine: WindowsMachine) -> list[WindowsProcess]:
    """Processes by PID."""
    found = []
    for service in machine.services.all():
        if service.state == STOPPED or not service.pid:
            continue
        program = service.binary.partition(".exe")[0] + ".exe"
        found.append(WindowsProcess(service.pid, ntpath.basename(program), service.binary, service.started_at))
        if service.name == KUBELET and not machine.runs_kubelet_as_service and machine.kubelet.is_running:
            line = kubelet_command(machine.spec, machine.kubelet_identity)
            found.append(WindowsProcess(service.pid + _CHILD, "kubelet.exe", line, service.started_at))
    return sorted(found)
