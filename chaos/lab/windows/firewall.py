"""Windows Defender Firewall of one machine: block rules on disk, and their effect on traffic.

An explicit block beats any allow, so rules that allow are not simulated. Rules act only where the profile's firewall is
on. They persist over a reboot. A rule judges a flow by the direction of its first packet: ``out`` cuts the kubelet off
the API server, also on connections that exist; ``in`` cuts the clients of WinRM, SSH and the kubelet's port. The lab's
clients come from 127.0.0.1, which stands for the address of a remote one: Windows itself does not filter loopback.
"""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.lab.node.network import Direction, Family, Network
from chaos.lab.windows.disk import SERVICES, WindowsRegistry

API_PORT = 6443
PROFILES = ("Domain", "Private", "Public")
ACTIVE_PROFILE = "Public"  # invented: a machine outside a domain
RULES_KEY = SERVICES + r"\SharedAccess\Parameters\FirewallPolicy\FirewallRules"
_VERSION = "v2.31"  # of Server 2022


class FirewallError(ValueError):
    """A value that netsh does not accept."""


@dataclass(frozen=True, slots=True)
class FirewallRule:
    """A rule that blocks flows of a direction with addresses in netsh's words, in all profiles."""

    name: str
    direction: Direction
    remote_ip: tuple[str, ...] = ("any",)


@dataclass
class Firewall:
    """Rules in order of creation; ``state`` by profile. ``on_change``: called after a change of either."""

    network: Network
    rules: list[FirewallRule] = field(default_factory=list)
    state: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(PROFILES, True))
    on_change: list[Callable[[], None]] = field(default_factory=list)

    def add(self, rule: FirewallRule) -> None:
        """Add a rule; other rules may have its name."""
        self.rules.append(rule)
        self.apply()

    def delete(self, name: str) -> int:
        """Delete every rule of that name. Returns how many there were."""
        left = [rule for rule in self.rules if rule.name.lower() != name.lower()]
        count = len(self.rules) - len(left)
        self.rules = left
        self.apply()
        return count

    def turn(self, *, on: bool, profiles: tuple[str, ...] = PROFILES) -> None:
        """Turn the firewall of these profiles on or off."""
        self.state.update(dict.fromkeys(profiles, on))
        self.apply()

    def apply(self) -> None:
        """Drop the packets that the rules block."""
        dropped: set[tuple[Family, Direction]] = set()
        for family, address in self.network.server_addresses.items():
            if self.blocks("out", address):
                dropped.add((family, "out"))
        self.network.set_drops(dropped)
        for call in list(self.on_change):
            call()

    def blocks(self, direction: Direction, address: str) -> bool:
        """Whether flows with the peer ``address`` are blocked, of those that begin in this direction."""
        return self.state[ACTIVE_PROFILE] and any(
            rule.direction == direction and any(covers_address(text, address) for text in rule.remote_ip)
            for rule in self.rules
        )


def covers_address(text: str, address: str) -> bool:
    """Whether an address, network, range or ``any`` of netsh contains ``address``. Raises FirewallError."""
    if text.lower() == "any":
        return True
    wanted = ipaddress.ip_address(address)
    try:
        if "-" in text:
            low, high = (ipaddress.ip_address(end.strip()) for end in text.split("-", 1))
            return low.version == wanted.version and int(low) <= int(wanted) <= int(high)
        network = ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise FirewallError(text) from error
    return network.version == wanted.version and wanted in network


def write_rules(firewall: Firewall, registry: WindowsRegistry) -> None:
    """Write all rules to the registry, one value each, as Windows keeps its local policy (MS-GPFAS 2.2.2.19)."""
    registry.delete_key(RULES_KEY)
    registry.create(RULES_KEY)
    for number, rule in enumerate(firewall.rules):
        identifier = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number} {rule.name}")).upper()
        registry.set(RULES_KEY, f"{{{identifier}}}", "REG_SZ", _rule_text(rule))


def _rule_text(rule: FirewallRule) -> str:
    """Fields between bars; what holds for all addresses is left out."""
    addresses = [f"RA{'6' if ':' in text else '4'}={text}" for text in rule.remote_ip if text.lower() != "any"]
    head = [_VERSION, "Action=Block", "Active=TRUE", f"Dir={rule.direction.capitalize()}"]
    return "|".join([*head, *addresses, f"Name={rule.name}", ""])
