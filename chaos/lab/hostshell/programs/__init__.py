"""Programs of the simulated hosts, with the output of the real ones."""

from __future__ import annotations

from chaos.lab.hostshell.process import Program
from chaos.lab.hostshell.programs.busctl import PROGRAMS as BUSCTL
from chaos.lab.hostshell.programs.coreutils import PROGRAMS as COREUTILS
from chaos.lab.hostshell.programs.cpu_quota import PROGRAMS as CPU_QUOTA
from chaos.lab.hostshell.programs.crictl import PROGRAMS as CRICTL
from chaos.lab.hostshell.programs.disks import PROGRAMS as DISKS
from chaos.lab.hostshell.programs.file_status import PROGRAMS as FILE_STATUS
from chaos.lab.hostshell.programs.find import PROGRAMS as FIND
from chaos.lab.hostshell.programs.journalctl import PROGRAMS as JOURNALCTL
from chaos.lab.hostshell.programs.links import PROGRAMS as LINKS
from chaos.lab.hostshell.programs.mounts import PROGRAMS as MOUNTS
from chaos.lab.hostshell.programs.network_tools import PROGRAMS as NETWORK_TOOLS
from chaos.lab.hostshell.programs.nft import PROGRAMS as NFT
from chaos.lab.hostshell.programs.openssl import PROGRAMS as OPENSSL
from chaos.lab.hostshell.programs.ping import PROGRAMS as PING
from chaos.lab.hostshell.programs.processes import PROGRAMS as PROCESSES
from chaos.lab.hostshell.programs.sed import PROGRAMS as SED
from chaos.lab.hostshell.programs.shutdown import PROGRAMS as SHUTDOWN
from chaos.lab.hostshell.programs.sysctl import PROGRAMS as SYSCTL
from chaos.lab.hostshell.programs.systemctl import PROGRAMS as SYSTEMCTL
from chaos.lab.hostshell.programs.systemd import PROGRAMS as SYSTEMD
from chaos.lab.hostshell.programs.tc import PROGRAMS as TC
from chaos.lab.hostshell.programs.transient_units import PROGRAMS as TRANSIENT_UNITS

PROGRAMS: dict[str, Program] = {
    **BUSCTL,
    **COREUTILS,
    **CPU_QUOTA,
    **CRICTL,
    **DISKS,
    **FILE_STATUS,
    **FIND,
    **JOURNALCTL,
    **LINKS,
    **MOUNTS,
    **NETWORK_TOOLS,
    **NFT,
    **OPENSSL,
    **PING,
    **PROCESSES,
    **SED,
    **SHUTDOWN,
    **SYSCTL,
    **SYSTEMCTL,
    **SYSTEMD,
    **TC,
    **TRANSIENT_UNITS,
}
