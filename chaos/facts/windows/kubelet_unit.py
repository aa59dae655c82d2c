"""Service that runs the kubelet."""

from __future__ import annotations

from chaos.facts.windows._services import KUBELET, UNKNOWN_SERVICE, query_service
from chaos.model.fact import HostFact


class KubeletUnit(HostFact):
    """Text: the service's name, ``kubelet``."""

    name = "kubelet-unit"
    summary = "service of the kubelet"
    command = query_service(KUBELET)

    def parse(self, stdout: str, exit_code: int) -> str:  # noqa: ARG002 - only whether it is there
        if exit_code == UNKNOWN_SERVICE:
            raise ValueError(f"there is no service {KUBELET}")
        if exit_code:
            raise ValueError("sc.exe is not understood")
        return KUBELET


FACT = KubeletUnit()
