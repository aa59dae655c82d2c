"""State of any service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from chaos.facts.windows._services import parse_service_state, query_service
from chaos.model.command import HostCommand
from chaos.model.document import Model
from chaos.model.fact import HostFact


class ServiceStateParams(Model):
    service: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,255}$", description="name of a service, as w32time")


class ServiceState(HostFact):
    """Text, in systemd's words: active, inactive, activating, deactivating, paused."""

    name = "service-state"
    summary = "state of a Windows service"
    params = ServiceStateParams
    options: ServiceStateParams

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - no needs
        return query_service(self.options.service)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_service_state(stdout, exit_code)


FACT = ServiceState()
