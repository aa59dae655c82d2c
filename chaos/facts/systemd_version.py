"""Version of systemd, on which the effect of cancelling a shutdown depends."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class SystemdVersion(HostFact):
    """Whole number, as 252."""

    name = "systemd-version"
    summary = "version of systemd"
    command = HostCommand(("systemctl", "--version"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> int:
        match = re.match(r"systemd (\d+)", stdout)
        if exit_code or not match:
            raise ValueError("no systemd")
        return int(match[1])


FACT = SystemdVersion()
