"""Rules of nodefall in the Windows firewall."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import system_program

# Where the firewall stores its rules. netsh.exe would print all of them, hundreds, with labels that are translated.
_KEY = r"HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules"
_RULE = re.compile(r"    REG_SZ    v[\d.]+\|[^\r\n]*?\|Name=(?P<name>nodefall-[^|\r\n]*)\|")


class FirewallRules(HostFact):
    """Sorted list of names, as ``["nodefall-0a1b2c-cut"]``; rules of the same name count once."""

    name = "firewall-rules"
    summary = "rules of nodefall in the Windows firewall"
    command = HostCommand((system_program("reg"), "query", _KEY, "/f", "Name=nodefall-", "/d"), accept=(0, 1))

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code == 1 and stdout.strip():  # the number of matches, which is none; of a bad key there is no output
            return []
        if exit_code:
            raise ValueError("the registry has no firewall rules")
        return sorted({match["name"] for match in _RULE.finditer(stdout)})


FACT = FirewallRules()
