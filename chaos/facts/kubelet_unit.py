"""Unit that runs the kubelet; its name depends on the distribution."""

from __future__ import annotations

from chaos.facts.units import parse_unit, show_command
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
    """Text: name of the loaded unit, as ``kubelet.service``; an active one before one that starts at boot."""

    name = "kubelet-unit"
    summary = "systemd unit of the kubelet"
    command = show_command(UNITS)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_unit(stdout, exit_code, UNITS)


FACT = KubeletUnit()
