"""OpenSSH of a Windows machine, with cmd.exe as default shell, or what DefaultShell in the registry names."""

from __future__ import annotations

from collections.abc import Callable

import asyncssh

from chaos.lab.hostshell.ssh import SshServer
from chaos.lab.hostshell.streams import discard, no_input
from chaos.lab.node.machine import Machine
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.winshell.cmd import run_line
from chaos.lab.winshell.powershell import powershell
from chaos.lab.winshell.process import WinHost, WinProcess, default_environment, launch
from chaos.lab.winshell.programs import PROGRAMS

_OPENSSH = r"HKLM\SOFTWARE\OpenSSH"
_SYSTEM = r"NT AUTHORITY\SYSTEM"


class WindowsSshServer(SshServer):
    """SSH server whose commands run in cmd.exe or PowerShell. It also starts the tasks of the task scheduler."""

    server_version = "OpenSSH_for_Windows_8.6"

    def _on_machine_change(self, machine: Machine) -> None:
        assert isinstance(machine, WindowsMachine)  # noqa: S101 - the only one it listens to
        machine.tasks.run = self._run_task
        super()._on_machine_change(machine)

    async def _run(self, channel: asyncssh.SSHServerProcess[str]) -> int:
        if channel.command is None:
            channel.stderr.write("the lab simulates no interactive shell\r\n")
            return 1

        read_line = self._line_reader(channel)
        host = self._win_host()
        process = WinProcess(
            *(host, f"{host.machine.computer}\\{self.user}", channel.stdout.write, channel.stderr.write, read_line),
            default_environment(host.machine, self.user),
            f"C:\\Users\\{self.user}",
            is_foreground=True,
        )
        if self._default_shell().endswith("powershell.exe"):
            code = await powershell(process, f"-c {channel.command}")
        else:
            code = await run_line(process, channel.command)
        # Packer sees 1 over SSH where WinRM has 1115 and 1190; which other codes change is invented
        return code if 0 <= code < 256 else 1

    def _default_shell(self) -> str:
        return self._win_host().machine.registry.text(_OPENSSH, "DefaultShell").lower()

    def _win_host(self) -> WinHost:
        assert isinstance(self._machine, WindowsMachine)  # noqa: S101 - the only one it serves
        return WinHost(self._machine, self.host.sim, self._lockstep, PROGRAMS)

    def _run_task(self, line: str, done: Callable[[int], None]) -> None:
        """Run the command line of a task as SYSTEM; simulated time waits while it computes."""
        host = self._win_host()

        async def run() -> int:
            code = await launch(process, line)
            done(code)
            return code

        process = WinProcess(host, _SYSTEM, discard, discard, no_input, default_environment(host.machine, "SYSTEM"))
        self._start_detached(run)
