"""Programs of the simulated Windows machines, with the output of the real ones."""

from __future__ import annotations

from chaos.lab.winshell.cmd import cmd
from chaos.lab.winshell.powershell import powershell
from chaos.lab.winshell.process import Program, with_arguments
from chaos.lab.winshell.programs.certutil import certutil
from chaos.lab.winshell.programs.netinfo import ipconfig, netstat
from chaos.lab.winshell.programs.netsh import netsh
from chaos.lab.winshell.programs.notmyfault import notmyfault
from chaos.lab.winshell.programs.processes import taskkill, tasklist
from chaos.lab.winshell.programs.reg import reg
from chaos.lab.winshell.programs.sc import sc
from chaos.lab.winshell.programs.schtasks import schtasks
from chaos.lab.winshell.programs.shutdown import shutdown
from chaos.lab.winshell.programs.small import hostname, ping, timeout, whoami
from chaos.lab.winshell.programs.w32tm import w32tm
from chaos.lab.winshell.programs.wevtutil import wevtutil

PROGRAMS: dict[str, Program] = {
    "certutil": with_arguments(certutil),
    "cmd": cmd,
    "hostname": with_arguments(hostname),
    "ipconfig": with_arguments(ipconfig),
    "netsh": with_arguments(netsh),
    "netstat": with_arguments(netstat),
    "notmyfault64": with_arguments(notmyfault),
    "ping": with_arguments(ping),
    "powershell": powershell,
    "reg": with_arguments(reg),
    "sc": with_arguments(sc),
    "schtasks": with_arguments(schtasks),
    "shutdown": with_arguments(shutdown),
    "taskkill": with_arguments(taskkill),
    "tasklist": with_arguments(tasklist),
    "timeout": with_arguments(timeout),
    "w32tm": with_arguments(w32tm),
    "wevtutil": with_arguments(wevtutil),
    "whoami": with_arguments(whoami),
}
