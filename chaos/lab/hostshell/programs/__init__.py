"""The programs of the simulated hosts, in the real ones' words."""

from __future__ import annotations

from chaos.lab.hostshell.process import Program
from chaos.lab.hostshell.programs.busctl import PROGRAMS as BUSCTL
from chaos.lab.hostshell.programs.coreutils import PROGRAMS as BASIC
from chaos.lab.hostshell.programs.crictl import PROGRAMS as LOOKING
from chaos.lab.hostshell.programs.network_tools import PROGRAMS as REACH
from chaos.lab.hostshell.programs.nft import PROGRAMS as NFT
from chaos.lab.hostshell.programs.processes import PROGRAMS as PROCESSES
from chaos.lab.hostshell.programs.shutdown import PROGRAMS as SHUTDOWN
from chaos.lab.hostshell.programs.systemctl import PROGRAMS as SYSTEMCTL
from chaos.lab.hostshell.programs.systemd import PROGRAMS as SYSTEMD
from chaos.lab.hostshell.programs.transient_units import PROGRAMS as FILLERS

PROGRAMS: dict[str, Program] = {
    **BASIC,
    **BUSCTL,
    **FILLERS,
    **LOOKING,
    **NFT,
    **PROCESSES,
    **REACH,
    **SHUTDOWN,
    **SYSTEMCTL,
    **SYSTEMD,
}
