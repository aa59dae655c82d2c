"""Cmdlets by lower-case name, and their aliases."""

from __future__ import annotations

from chaos.lab.winshell.pwsh.cmdlets import cim, files, network, objects, services, tasks, times
from chaos.lab.winshell.pwsh.invocation import Cmdlet

CMDLETS: dict[str, Cmdlet] = {}
for _module in (cim, files, network, objects, services, tasks, times):
    CMDLETS.update({name.lower(): cmdlet for name, cmdlet in _module.CMDLETS.items()})
ALIASES = {
    "%": "foreach-object",
    "?": "where-object",
    "cat": "get-content",
    "echo": "write-output",
    "foreach": "foreach-object",
    "gc": "get-content",
    "gcim": "get-ciminstance",
    "gl": "get-location",
    "gp": "get-itemproperty",
    "gps": "get-process",
    "gsv": "get-service",
    "ps": "get-process",
    "pwd": "get-location",
    "sasv": "start-service",
    "sc": "set-content",  # in 5.1, which is why scripts must write sc.exe
    "select": "select-object",
    "sleep": "start-sleep",
    "sort": "sort-object",
    "spsv": "stop-service",
    "type": "get-content",
    "where": "where-object",
    "write": "write-output",
}
