"""Service that runs the kubelet."""

from __future__ import annotations

from chaos.facts.windows._services import KUBELET, parse_service_name, query_service
from chaos.model.fact import HostFact


class KubeletUnit(HostFact):
    """Text: the service's name, ``kubelet``."""

    name = "kubelet-unit"
    summary = "service of the kubelet"
    command = query_service(KUBELET)

    def parse(self, stdout: str, exit_code: int) -> str:  # noqa: ARG002 - only whether it is there
        return parse_service_name(exit_code, KUBELET)


FACT = KubeletUnit()
