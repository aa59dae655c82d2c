"""Rules of nodefall in the Windows firewall."""

from __future__ import annotations

import re

from chaos.model.action import failsafe_unit
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import system_program

# Where the firewall stores its rules. netsh.exe would print all of them, hundreds, with labels that are translated.
_KEY = r"HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules"
_RULE = re.compile(r"    REG_SZ    v[\d.]+\|[^\r\n]*?\|Name=(?P<name>nodefall-[^|\r\n]*)\|")


def find_rules(tag: str = "") -> HostCommand:
    """Lists the rules of the step with ``tag``, or of every step; 1 and a line of output if there are none."""
    name = f"{failsafe_unit(tag)}|" if tag else "nodefall-"
    return HostCommand((system_program("reg"), "query", _KEY, "/f", f"Name={name}", "/d"), accept=(0, 1))


class FirewallRules(HostFact):
    """Sorted list of names, as ``["nodefall-0a1b2c-cut"]``; rules of the same name count once."""

    name = "firewall-rules"
    summary = "rules of nodefall in the Windows firewall"
    command = find_rules()

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code == 1 and stdout.strip():  # the number of matches, which is none; of a bad key there is no output
            return []
        if exit_code:
            raise ValueError("the registry has no firewall rules")
        return sorted({match["name"] for match in _RULE.finditer(stdout)})


FACT = FirewallRules()
