"""Whether nodefall's unit that uses up process IDs runs."""

from __future__ import annotations

from chaos.facts.units import parse_active_state
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class PidFiller(HostFact):
    """As systemd says; inactive where there is none."""

    name = "pid-filler"
    summary = "state of nodefall's unit that uses up process IDs"
    command = HostCommand(("systemctl", "show", "--property=ActiveState", "nodefall-pid-filler.service"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_active_state(stdout, exit_code)


FACT = PidFiller()
