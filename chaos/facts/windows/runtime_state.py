"""State of the container runtime's service."""

from __future__ import annotations

from chaos.facts.windows._services import RUNTIME, parse_service_state, query_service
from chaos.model.fact import HostFact


class RuntimeState(HostFact):
    """Text, in systemd's words: active, inactive, activating, deactivating, paused."""

    name = "runtime-state"
    summary = "state of the container runtime's service"
    command = query_service(RUNTIME)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_service_state(stdout, exit_code)


FACT = RuntimeState()
