"""WinRM of the Windows nodes of a lab: ports, the account, and how clients reach them."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chaos.lab.node.machine import Machine
from chaos.lab.server.content import write_private
from chaos.lab.sim import SimClock
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.sim.time_source import PortReservation
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.winrm.server import Account, WinRmServer
from chaos.lab.winshell.process import TOOLS
from chaos.lab.winshell.programs import PROGRAMS
from chaos.lab.winshell.servers import TaskRunner

WINRM_USER = "Administrator"  # other local administrators need LocalAccountTokenFilterPolicy


class WindowsHosts:
    """``tls``: TLS context by node. ``directory``: the lab's private one, which gets the files with the password."""

    def __init__(
        self,
        machines: Sequence[Machine],
        lockstep: Lockstep,
        sim: SimClock,
        tls: Callable[[str], ssl.SSLContext],
        directory: Path,
    ) -> None:
        password = secrets.token_urlsafe(12)
        self._password_file = directory / "winrm-password"
        write_private(self._password_file, password.encode())
        account = Account(WINRM_USER, password, directory / "winrm-accounts")
        found = [machine for machine in machines if isinstance(machine, WindowsMachine)]
        self.servers = [
            WinRmServer(
                machine,
                PortReservation(),
                lockstep,
                sim,
                tls(machine.name),
                account,
            )
            for machine in found
        ]
        self.task_runners = [TaskRunner(machine, sim, lockstep, PROGRAMS) for machine in found]

    def describe(self, node: str, ca_file: Path) -> dict[str, Any]:
        """How to reach WinRM of a node: WinRM with its URL and login, and what crashes it; empty for a Linux node."""
        server = next((item for item in self.servers if item.machine.name == node), None)
        if server is None:
            return {}
        return {
            "winrm": {
                "https": f"https://127.0.0.1:{server.port.port}/wsman",
                "user": WINRM_USER,
                "passwordFile": str(self._password_file),
                "caFile": str(ca_file),
            },
            "crashTool": TOOLS + "notmyfault64.exe",
        }
