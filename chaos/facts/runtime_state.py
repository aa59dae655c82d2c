"""State of the container runtime's unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.facts.units import parse_active_state
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class RuntimeState(HostFact):
    """Text: systemd's ActiveState: active, inactive, failed, activating, deactivating."""

    name = "runtime-state"
    summary = "systemd's ActiveState of the container runtime's unit"
    needs = ("runtime-unit",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        return HostCommand(("systemctl", "show", "--property=ActiveState", str(known["runtime-unit"])), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_active_state(stdout, exit_code)


FACT = RuntimeState()
