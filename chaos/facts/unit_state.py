"""State of any systemd unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from chaos.facts.units import parse_active_state
from chaos.model.command import HostCommand
from chaos.model.document import Model
from chaos.model.fact import HostFact


class UnitStateParams(Model):
    unit: str = Field(pattern=r"^[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]*$", description="name of a unit, as cron.service")


class UnitState(HostFact):
    """Text: active, inactive, failed, activating or deactivating; inactive for a ``unit`` that is not loaded."""

    name = "unit-state"
    summary = "systemd's ActiveState of a unit"
    params = UnitStateParams
    options: UnitStateParams

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - no needs
        return HostCommand(("systemctl", "show", "--property=ActiveState", self.options.unit), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_active_state(stdout, exit_code)


FACT = UnitState()
