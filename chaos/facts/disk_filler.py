"""State of the unit by which nodefall fills disk space."""

from __future__ import annotations

from chaos.facts.units import parse_active_state
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class DiskFiller(HostFact):
    """Text: systemd's ActiveState, as ``active``; ``inactive`` if the unit is not loaded."""

    name = "disk-filler"
    summary = "state of the unit by which nodefall fills disk space"
    command = HostCommand(("systemctl", "show", "--property=ActiveState", "nodefall-disk-filler.service"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_active_state(stdout, exit_code)


FACT = DiskFiller()
