"""The Windows firewall."""

from __future__ import annotations

import re

from chaos.core.action import failsafe_unit
from chaos.core.command import HostCommand
from chaos.core.fact import host_fact, lines
from chaos.core.windows import powershell, system_program

# Where the firewall stores its rules. netsh.exe would print all of them, hundreds, with labels that are translated.
_RULES_KEY = r"HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules"
_RULE = re.compile(r"    REG_SZ    v[\d.]+\|[^\r\n]*?\|Name=(?P<name>nodefall-[^|\r\n]*)\|")


def find_rules(tag: str = "") -> HostCommand:
    """Lists the rules of the step with ``tag``, or of every step; 1 and a line of output if there are none."""
    name = f"{failsafe_unit(tag)}|" if tag else "nodefall-"
    return HostCommand((system_program("reg"), "query", _RULES_KEY, "/f", f"Name={name}", "/d"), accept=(0, 1))


@host_fact(
    "firewall-rules",
    "rules of nodefall in the Windows firewall",
    find_rules(),
    form=lines(r"    \S[^\n]*    REG_SZ    v[\d.]+\|[^\n]*", r"(?![^\n]*nodefall-)[^\n]*"),
)
def firewall_rules(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of names, as ``["nodefall-0a1b2c-cut"]``; rules of the same name count once."""
    if exit_code == 1 and stdout.strip():  # the number of matches, which is none; of a bad key there is no output
        return []
    if exit_code:
        raise ValueError("the registry has no firewall rules")
    return sorted({match["name"] for match in _RULE.finditer(stdout)})


_DOMAIN = "DomainAuthenticated"  # category of a network whose profile is Domain


@host_fact(
    "firewall-state", "state of the Windows firewall by profile in use", HostCommand(powershell("read-firewall"))
)
def firewall_state(stdout: str, exit_code: int) -> dict[str, str]:
    """Mapping ``{"Public": "on"}`` of the profiles in use; ``off``, or ``policy`` where local rules do not act.

    All profiles without a network that has one.
    """
    states: dict[str, str] = {}
    used: set[str] = set()
    for words in map(str.split, stdout.splitlines()):
        match words:
            case ["profile", name, "True" | "1", *rest]:
                states[name] = "policy" if rest in (["False"], ["0"]) else "on"
            case ["profile", name, *_]:
                states[name] = "off"
            case ["network", category]:
                used.add("Domain" if category == _DOMAIN else category)
    if exit_code or not states or not used <= states.keys():
        raise ValueError("the profiles were not listed")
    return {name: states[name] for name in sorted(used or states)}
