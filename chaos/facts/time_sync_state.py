"""State of the time synchronisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.facts.units import parse_active_state
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class TimeSyncState(HostFact):
    """Text: systemd's ActiveState: active, inactive, failed, activating, deactivating."""

    name = "time-sync-state"
    summary = "state of the time synchronisation's unit"
    needs = ("time-sync-unit",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        return HostCommand(("systemctl", "show", "--property=ActiveState", known["time-sync-unit"]), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_active_state(stdout, exit_code)


FACT = TimeSyncState()
