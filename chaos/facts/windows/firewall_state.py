"""State of the Windows firewall in the profiles that the host's networks have."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import powershell

_DOMAIN = "DomainAuthenticated"  # category of a network whose profile is Domain


class FirewallState(HostFact):
    """Mapping ``{"Public": "on"}`` of the profiles in use; ``off``, or ``policy`` where local rules do not act.

    All profiles without a network that has one.
    """

    name = "firewall-state"
    summary = "state of the Windows firewall by profile in use"
    command = HostCommand(powershell("read-firewall"))

    def parse(self, stdout: str, exit_code: int) -> dict[str, str]:
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


FACT = FirewallState()
