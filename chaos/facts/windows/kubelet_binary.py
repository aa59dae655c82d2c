"""Program of the kubelet's service."""

from __future__ import annotations

from chaos.facts.windows._registry import parse_value, query_value
from chaos.facts.windows._services import KUBELET, service_key
from chaos.model.fact import HostFact


class KubeletBinary(HostFact):
    r"""Text: command line of the service, as ``C:\k\kubelet.exe --windows-service``. `sc.exe qc` has it, translated."""

    name = "kubelet-binary"
    summary = "command line of the kubelet's service, which shows a wrapper such as nssm"
    command = query_value(service_key(KUBELET), "ImagePath")

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_value(stdout, exit_code, "ImagePath")


FACT = KubeletBinary()
