"""Programs of the simulated hosts, with the output of the real ones."""

from __future__ import annotations

from chaos.lab.hostshell.process import Program
from chaos.lab.hostshell.programs import (
    containers,
    coreutils,
    cpu,
    disks,
    files,
    kubectl,
    logind,
    network,
    packets,
    systemctl,
    systemd,
    units,
)

_MODULES = (containers, coreutils, cpu, disks, files, kubectl, logind, network, packets, systemctl, systemd, units)
PROGRAMS: dict[str, Program] = {name: program for module in _MODULES for name, program in module.PROGRAMS.items()}
