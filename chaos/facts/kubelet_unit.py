"""The unit that runs the kubelet; distributions name it differently."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

UNITS = (
    "kubelet.service",
    "k3s.service",
    "k3s-agent.service",
    "rke2-server.service",
    "rke2-agent.service",
    "snap.microk8s.daemon-kubelite.service",
    "snap.microk8s.daemon-kubelet.service",
    "snap.kubelet.daemon.service",
)


class KubeletUnit(HostFact):
    """The name of the loaded unit, an active one first."""

    name = "kubelet-unit"
    summary = "systemd unit of the kubelet"
    command = HostCommand(("systemctl", "show", "--property=Id,ActiveState,LoadState", *UNITS), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        units = []
        for block in stdout.split("\n\n"):
            fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
            if fields.get("LoadState") == "loaded":
                units.append((fields.get("ActiveState") != "active", fields.get("Id", "")))
        if exit_code or not units:
            raise ValueError("none of " + ", ".join(UNITS) + " is loaded")
        return min(units)[1]


FACT = KubeletUnit()
