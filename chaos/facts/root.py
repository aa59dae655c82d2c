"""Root privileges of commands."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class Root(HostFact):
    """True or false: true if commands run as root: the login user is root, or sudo permits it."""

    name = "root"
    summary = "whether commands run as root, through sudo unless the login user is root"
    command = HostCommand(("id", "-u"))

    def parse(self, stdout: str, exit_code: int) -> bool:
        if exit_code or not stdout.strip().isdecimal():
            raise ValueError("id is not understood")
        return stdout.strip() == "0"


FACT = Root()
