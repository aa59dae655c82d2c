"""Unit of the container runtime."""

from __future__ import annotations

from chaos.facts.units import parse_unit, show_command
from chaos.model.fact import HostFact

UNITS = ("containerd.service", "crio.service", "snap.microk8s.daemon-containerd.service", "docker.service")


class RuntimeUnit(HostFact):
    """Text: name of the loaded unit, an active one first. In k3s and rke2 that of the kubelet contains the runtime."""

    name = "runtime-unit"
    summary = "systemd unit of the container runtime"
    command = show_command(UNITS)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_unit(stdout, exit_code, UNITS)


FACT = RuntimeUnit()
