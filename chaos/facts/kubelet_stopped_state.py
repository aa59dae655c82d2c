"""Whether the kubelet's process is stopped by a signal."""

from __future__ import annotations

from chaos.facts.kubelet_process import KubeletProcess
from chaos.model.fact import HostFact


class KubeletStoppedState(HostFact):
    """A boolean; no process is an error."""

    name = "kubelet-stopped-state"
    summary = "whether the kubelet's process is frozen"
    command = KubeletProcess.command

    def parse(self, stdout: str, exit_code: int) -> bool:
        found = KubeletProcess().parse(stdout, exit_code)
        if not found:
            raise ValueError("there is no kubelet process")
        return bool(found["stopped"])


FACT = KubeletStoppedState()
