"""Count of the boots, which a kubelet on Windows reports as ``bootID``."""

from __future__ import annotations

from chaos.facts.windows._registry import parse_number, query_value
from chaos.model.fact import HostFact

_KEY = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"


class BootId(HostFact):
    """Text: a decimal number, one more after each boot, as kubelets report it (winstats, ``getBootID``)."""

    name = "boot-id"
    summary = "number of boots, which the kubelet reports as the boot ID"
    command = query_value(_KEY, "BootId")

    def parse(self, stdout: str, exit_code: int) -> str:
        return str(parse_number(stdout, exit_code, "BootId"))


FACT = BootId()
