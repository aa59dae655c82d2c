"""Whether we may act."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class Root(HostFact):
    """True where commands run as root: the login user is, or sudo lets it."""

    name = "root"
    summary = "whether commands run as root, through sudo where the login user is another"
    command = HostCommand(("id", "-u"))

    def parse(self, stdout: str, exit_code: int) -> bool:
        if exit_code or not stdout.strip().isdecimal():
            raise ValueError("id does not tell")
        return stdout.strip() == "0"


FACT = Root()
