"""OpenSSH of a Windows machine, with cmd.exe as default shell, or what DefaultShell in the registry names."""

from __future__ import annotations

import asyncssh

from chaos.lab.hostshell.ssh import SshServer
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.winshell.cmd import run_line
from chaos.lab.winshell.powershell import powershell
from chaos.lab.winshell.process import WinHost, WinProcess, default_environment
from chaos.lab.winshell.programs import PROGRAMS

_OPENSSH = r"HKLM\SOFTWARE\OpenSSH"


class WindowsSshServer(SshServer):
    """SSH server whose commands run in cmd.exe or PowerShell."""

    server_version = "OpenSSH_for_Windows_8.6"

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
