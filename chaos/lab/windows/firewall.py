"""Windows Defender Firewall of one machine: rules on disk, and their effect on traffic.

An explicit block beats any allow. Rules act only where the profile's firewall is on. They persist over a reboot.
A rule judges a flow by the direction of its first packet: ``out`` cuts the kubelet off the API server, also on
connections that exist; ``in`` cuts the clients of WinRM, SSH and the kubelet's port. The lab's clients come from
127.0.0.1, which stands for the address of a remote one: Windows itself does not filter loopback.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from chaos.lab.node.network import Direction, Family, Network

API_PORT = 6443
PROFILES = ("Domain", "Private", "Public")
ACTIVE_PROFILE = "Public"  # invented: a machine outside a domain
_TCP = ("tcp", "6", "any")
_EPHEMERAL = 49152  # port of a client: Windows takes 49152 to 65535


class FirewallError(ValueError):
    """A value that netsh does not accept."""


@dataclass(frozen=True, slots=True)
class FirewallRule:
    """A rule in netsh's words; addresses and ports as texts, ``any`` for all."""

    name: str
    direction: Direction
    action: str  # allow, block
    enabled: bool = True
    profiles: tuple[str, ...] = PROFILES
    local_ip: tuple[str, ...] = ("any",)
    remote_ip: tuple[str, ...] = ("any",)
    protocol: str = "any"
    local_port: tuple[str, ...] = ("any",)
    remote_port: tuple[str, ...] = ("any",)
    program: str = ""

    def covers(self, direction: Direction, address: str, port: int) -> bool:
        """Whether the rule matches TCP flows with the peer ``address``: to its ``port``, or ``in`` to our own one."""
        ports, others = (
            (self.remote_port, self.local_port) if direction == "out" else (self.local_port, self.remote_port)
        )
        return (
            self.enabled
            and self.direction == direction
            and ACTIVE_PROFILE in self.profiles
            and not self.program  # the lab does not know which program has a flow
            and self.protocol.lower() in _TCP
            and any(covers_address(text, address) for text in self.remote_ip)
            and any(covers_port(text, port) for text in ports)
            and any(covers_port(text, _EPHEMERAL) for text in others)
        )


@dataclass
class Firewall:
    """Rules in order of creation; ``state`` by profile; ``outbound_block`` by profile: the default policy.

    ``on_change``: called after a change of any of them.
    """

    network: Network
    node: str
    rules: list[FirewallRule] = field(default_factory=list)
    state: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(PROFILES, True))
    outbound_block: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(PROFILES, False))
    on_change: list[Callable[[], None]] = field(default_factory=list)

    def add(self, rule: FirewallRule) -> None:
        """Add a rule; other rules may have its name."""
        self.rules.append(rule)
        self.apply()

    def delete(self, name: str) -> int:
        """Delete every rule of that name, or all for ``all``. Returns how many there were."""
        left = [] if name.lower() == "all" else [rule for rule in self.rules if rule.name.lower() != name.lower()]
        count = len(self.rules) - len(left)
        self.rules = left
        self.apply()
        return count

    def enable(self, rules: list[FirewallRule], *, enabled: bool) -> None:
        """Enable or disable rules."""
        self.rules = [replace(rule, enabled=enabled) if rule in rules else rule for rule in self.rules]
        self.apply()

    def named(self, name: str) -> list[FirewallRule]:
        """Rules of that name, or all for ``all``."""
        return [rule for rule in self.rules if name.lower() in ("all", rule.name.lower())]

    def turn(self, profiles: tuple[str, ...], *, on: bool) -> None:
        """Turn the firewall of these profiles on or off."""
        self.state.update(dict.fromkeys(profiles, on))
        self.apply()

    def set_policy(self, profiles: tuple[str, ...], *, outbound_block: bool) -> None:
        """Set the default policy for outbound traffic."""
        self.outbound_block.update(dict.fromkeys(profiles, outbound_block))
        self.apply()

    def apply(self) -> None:
        """Drop the packets that the rules block."""
        dropped: set[tuple[Family, Direction]] = set()
        for family, address in self.network.server_addresses.items():
            if self.blocks("out", address, API_PORT):
                dropped.add((family, "out"))
        self.network.set_drops(dropped)
        for call in list(self.on_change):
            call()

    def blocks(self, direction: Direction, address: str, port: int) -> bool:
        """Whether a TCP flow with the peer ``address`` is blocked: to its ``port``, or ``in`` to our own ``port``.

        What no rule matches goes by the default policy. Inbound, the lab has no rule for every program that listens,
        so there only a block rule blocks.
        """
        if not self.state[ACTIVE_PROFILE]:
            return False
        actions = {rule.action for rule in self.rules if rule.covers(direction, address, port)}
        is_default = direction == "out" and self.outbound_block[ACTIVE_PROFILE]
        return "block" in actions or (is_default and "allow" not in actions)


def covers_address(text: str, address: str) -> bool:
    """Whether an address, network, range or keyword of netsh contains ``address``. Raises FirewallError."""
    if text.lower() == "any":
        return True
    if text.lower() == "localsubnet":
        return True  # all nodes of the lab are in one subnet
    wanted = ipaddress.ip_address(address)
    try:
        if "-" in text:
            low, high = (ipaddress.ip_address(end.strip()) for end in text.split("-", 1))
            return low.version == wanted.version and int(low) <= int(wanted) <= int(high)
        network = ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise FirewallError(text) from error
    return network.version == wanted.version and wanted in network


def covers_port(text: str, port: int) -> bool:
    """Whether a port, range or keyword contains ``port``. Raises FirewallError."""
    if text.lower() == "any":
        return True
    low, _, high = text.partition("-")
    if not low.isdecimal() or not (high or low).isdecimal():
        raise FirewallError(text)
    return int(low) <= port <= int(high or low)
