"""State of the unit by which nodefall keeps CPUs busy."""

from __future__ import annotations

from chaos.facts.units import parse_active_state
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class CpuFiller(HostFact):
    """Text: systemd's ActiveState, as ``active``; ``inactive`` if the unit is not loaded."""

    name = "cpu-filler"
    summary = "state of the unit by which nodefall keeps CPUs busy"
    command = HostCommand(("systemctl", "show", "--property=ActiveState", "nodefall-cpu-filler.service"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_active_state(stdout, exit_code)


FACT = CpuFiller()
