"""UUID of the machine, from its firmware."""

from __future__ import annotations

from chaos.facts.windows._registry import parse_value, query_value
from chaos.model.fact import HostFact


class SystemUuid(HostFact):
    """Text in lower case. A kubelet reads the same value, and reports it in capitals (winstats, ``getSystemUUID``)."""

    name = "system-uuid"
    summary = "UUID of the machine, which the kubelet reports as the system UUID"
    command = query_value(r"HKLM\SYSTEM\HardwareConfig", "LastConfig")

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_value(stdout, exit_code, "LastConfig").strip("{}").lower()


FACT = SystemUuid()
