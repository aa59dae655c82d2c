"""The firewall's rules in the registry, one value each, as Windows keeps its local policy (MS-GPFAS 2.2.2.19)."""

from __future__ import annotations

import uuid

from chaos.lab.windows.firewall import PROFILES, Firewall, FirewallRule
from chaos.lab.windows.registry import SERVICES, WindowsRegistry

RULES_KEY = SERVICES + r"\SharedAccess\Parameters\FirewallPolicy\FirewallRules"
_VERSION = "v2.31"  # of Server 2022
_PROTOCOLS = {"tcp": "6", "udp": "17"}
_WORDS = {"localsubnet": "LocalSubnet"}


def write_rules(firewall: Firewall, registry: WindowsRegistry) -> None:
    """Write all rules, after a change of any."""
    registry.delete_key(RULES_KEY)
    registry.create(RULES_KEY)
    for number, rule in enumerate(firewall.rules):
        identifier = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number} {rule.name}")).upper()
        registry.set(RULES_KEY, f"{{{identifier}}}", "REG_SZ", rule_text(rule))


def rule_text(rule: FirewallRule) -> str:
    """Fields between bars; what holds for all profiles, addresses or ports is left out."""
    fields = [_VERSION, f"Action={rule.action.capitalize()}", f"Active={str(rule.enabled).upper()}"]
    fields.append(f"Dir={rule.direction.capitalize()}")
    if rule.protocol.lower() != "any":
        fields.append(f"Protocol={_PROTOCOLS.get(rule.protocol.lower(), rule.protocol)}")
    if set(rule.profiles) != set(PROFILES):
        fields += [f"Profile={profile}" for profile in rule.profiles]
    fields += [f"LPort={port}" for port in rule.local_port if port.lower() != "any"]
    fields += [f"RPort={port}" for port in rule.remote_port if port.lower() != "any"]
    fields += [f"R{_address(text)}" for text in rule.remote_ip if text.lower() != "any"]
    fields += [f"L{_address(text)}" for text in rule.local_ip if text.lower() != "any"]
    fields += [f"App={rule.program}"] if rule.program else []
    return "|".join([*fields, f"Name={rule.name}", ""])


def _address(text: str) -> str:
    return f"A{'6' if ':' in text else '4'}={_WORDS.get(text.lower(), text)}"
