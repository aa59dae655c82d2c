"""Services that the kubelet's service needs."""

from __future__ import annotations

from chaos.facts.windows._registry import parse_strings, query_value
from chaos.facts.windows._services import KUBELET
from chaos.model.fact import HostFact

_VALUE = "DependOnService"


class KubeletDependencies(HostFact):
    """Sorted list of names in lower case, as ``["containerd"]``: none of them can be stopped while the kubelet runs."""

    name = "kubelet-dependencies"
    summary = "services that the kubelet's service depends on"
    command = query_value(rf"HKLM\SYSTEM\CurrentControlSet\Services\{KUBELET}", _VALUE)

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code == 1 and not stdout.strip():  # no such value, as of a service without dependencies
            return []
        return sorted(name.lower() for name in parse_strings(stdout, exit_code, _VALUE))


FACT = KubeletDependencies()
