"""The programs of the simulated hosts, in the real ones' words."""

from __future__ import annotations

from chaos.lab.servers.process import Program
from chaos.lab.servers.programs.basic import PROGRAMS as BASIC
from chaos.lab.servers.programs.busctl import PROGRAMS as BUSCTL
from chaos.lab.servers.programs.fillers import PROGRAMS as FILLERS
from chaos.lab.servers.programs.looking import PROGRAMS as LOOKING
from chaos.lab.servers.programs.nft import PROGRAMS as NFT
from chaos.lab.servers.programs.processes import PROGRAMS as PROCESSES
from chaos.lab.servers.programs.reach import PROGRAMS as REACH
from chaos.lab.servers.programs.shutdown import PROGRAMS as SHUTDOWN
from chaos.lab.servers.programs.systemctl import PROGRAMS as SYSTEMCTL
from chaos.lab.servers.programs.systemd import PROGRAMS as SYSTEMD

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
