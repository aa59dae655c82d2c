"""Programs of the simulated Windows machines: what nodefall starts there, with the output of the real ones."""

from __future__ import annotations

from chaos.lab.winshell.powershell import powershell
from chaos.lab.winshell.process import Program
from chaos.lab.winshell.programs.identity import hostname, whoami
from chaos.lab.winshell.programs.netsh import netsh
from chaos.lab.winshell.programs.reg import reg
from chaos.lab.winshell.programs.sc import sc
from chaos.lab.winshell.programs.schtasks import schtasks
from chaos.lab.winshell.programs.shutdown import notmyfault, shutdown
from chaos.lab.winshell.programs.wevtutil import wevtutil

PROGRAMS: dict[str, Program] = {
    "hostname": hostname,
    "netsh": netsh,
    "notmyfault64": notmyfault,
    "powershell": powershell,
    "reg": reg,
    "sc": sc,
    "schtasks": schtasks,
    "shutdown": shutdown,
    "wevtutil": wevtutil,
    "whoami": whoami,
}
