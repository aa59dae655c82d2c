"""Service of the container runtime."""

from __future__ import annotations

from chaos.facts.windows._services import RUNTIME, parse_service_name, query_service
from chaos.model.fact import HostFact


class RuntimeUnit(HostFact):
    """Text: the service's name, ``containerd``: the only runtime of the kubelet on Windows that nodefall knows."""

    name = "runtime-unit"
    summary = "service of the container runtime"
    command = query_service(RUNTIME)

    def parse(self, stdout: str, exit_code: int) -> str:  # noqa: ARG002 - only whether it is there
        return parse_service_name(exit_code, RUNTIME)


FACT = RuntimeUnit()
