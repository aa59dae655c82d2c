"""Stopped state of the kubelet's process."""

from __future__ import annotations

from chaos.facts.kubelet_process import KubeletProcess
from chaos.model.fact import HostFact


class KubeletStoppedState(HostFact):
    """True or false: true if the process is stopped by a signal; unknown without a process."""

    name = "kubelet-stopped-state"
    summary = "whether the kubelet's process is stopped by a signal"
    command = KubeletProcess.command

    def parse(self, stdout: str, exit_code: int) -> bool:
        process = KubeletProcess().parse(stdout, exit_code)
        if not process:
            raise ValueError("there is no kubelet process")
        return bool(process["stopped"])


FACT = KubeletStoppedState()
