"""The firewall's rules in the registry, one value each, as Windows keeps its local policy (MS-GPFAS 2.2.2.19)."""

from __future__ import annotations

import uuid

from chaos.lab.windows.firewall import Firewall, FirewallRule
from chaos.lab.windows.registry import SERVICES, WindowsRegistry

RULES_KEY = SERVICES + r"\SharedAccess\Parameters\FirewallPolicy\FirewallRules"
_VERSION = "v2.31"  # of Server 2022


def write_rules(firewall: Firewall, registry: WindowsRegistry) -> None:
    """Write all rules, after a change of any."""
    registry.delete_key(RULES_KEY)
    registry.create(RULES_KEY)
    for number, rule in enumerate(firewall.rules):
        identifier = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number} {rule.name}")).upper()
        registry.set(RULES_KEY, f"{{{identifier}}}", "REG_SZ", _text(rule))


def _text(rule: FirewallRule) -> str:
    """Fields between bars; what holds for all addresses is left out."""
    addresses = [f"RA{'6' if ':' in text else '4'}={text}" for text in rule.remote_ip if text.lower() != "any"]
    head = [_VERSION, "Action=Block", "Active=TRUE", f"Dir={rule.direction.capitalize()}"]
    return "|".join([*head, *addresses, f"Name={rule.name}", ""])
