"""State of the kubelet's service."""

from __future__ import annotations

from chaos.facts.windows._services import KUBELET, parse_service_state, query_service
from chaos.model.fact import HostFact


class KubeletState(HostFact):
    """Text, in systemd's words: active, inactive, activating, deactivating, paused."""

    name = "kubelet-state"
    summary = "state of the kubelet's service"
    command = query_service(KUBELET)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_service_state(stdout, exit_code)


FACT = KubeletState()
