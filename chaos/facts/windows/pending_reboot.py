"""Updates that wait for a restart of Windows."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import system_program

_KEY = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing"
_MARKS = ("PackagesPending", "RebootInProgress", "RebootPending")
_SUBKEY = re.compile(r"^HKEY_LOCAL_MACHINE\\.*\\Component Based Servicing\\(?P<name>[^\\]+)$", re.IGNORECASE)


class PendingReboot(HostFact):
    """Sorted list of the marks of servicing that are there: PackagesPending, RebootInProgress, RebootPending."""

    name = "pending-reboot"
    summary = "marks of updates that wait for a restart, which then takes minutes longer"
    command = HostCommand((system_program("reg"), "query", _KEY), accept=(0, 1))

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code:
            raise ValueError("the registry has no key of servicing")
        found = {match["name"] for line in stdout.splitlines() if (match := _SUBKEY.match(line.strip()))}
        return [mark for mark in _MARKS if mark in found]


FACT = PendingReboot()
