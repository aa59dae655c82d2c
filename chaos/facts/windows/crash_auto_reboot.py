"""Whether Windows boots again after a bug check."""

from __future__ import annotations

from chaos.facts.windows._registry import parse_number, query_value
from chaos.model.fact import HostFact


class CrashAutoReboot(HostFact):
    """True or false: AutoReboot of CrashControl."""

    name = "crash-auto-reboot"
    summary = "whether the machine boots again by itself after a bug check"
    command = query_value(r"HKLM\SYSTEM\CurrentControlSet\Control\CrashControl", "AutoReboot")

    def parse(self, stdout: str, exit_code: int) -> bool:
        return parse_number(stdout, exit_code, "AutoReboot") != 0


FACT = CrashAutoReboot()
