"""Process of the kubelet's service."""

from __future__ import annotations

from chaos.facts.windows._services import KUBELET, parse_process, query_process
from chaos.model.fact import HostFact


class KubeletProcess(HostFact):
    """Mapping ``{"pid": 812}``, {} without a process. Under nssm it is that of nssm, which ends with the kubelet."""

    name = "kubelet-process"
    summary = "process ID of the kubelet's service"
    command = query_process(KUBELET)

    def parse(self, stdout: str, exit_code: int) -> dict[str, int]:
        pid = parse_process(stdout, exit_code)
        return {"pid": pid} if pid else {}


FACT = KubeletProcess()
