"""State of the kubelet's unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.facts.units import parse_active_state
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class KubeletState(HostFact):
    """Text: systemd's ActiveState: active, inactive, failed, activating, deactivating."""

    name = "kubelet-state"
    summary = "systemd's ActiveState of the kubelet's unit"
    needs = ("kubelet-unit",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        return HostCommand(("systemctl", "show", "--property=ActiveState", str(known["kubelet-unit"])), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_active_state(stdout, exit_code)


FACT = KubeletState()
