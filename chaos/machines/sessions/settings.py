"""SSH settings of one host: its inventory entry, merged with the inventory's defaults and those of this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chaos.core.duration import parse_duration
from chaos.core.errors import UsageError
from chaos.core.inventory import Connection, Host, Inventory
from chaos.machines.windows_command_line import WindowsShell

_HOP = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[0-9A-Fa-f:.%\w]+)\]|(?P<address>[^:\[\]@\s]+))(?::(?P<port>\d+))?"
)
CONNECT_TIMEOUT = "10s"


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Settings of a connection; ``jumps`` are the jump hosts in the order of the path."""

    name: str
    address: str
    user: str
    known_hosts: Path
    port: int = 22
    sudo: bool = True
    identity_file: Path | None = None
    agent: bool = True
    jumps: tuple[HostSettings, ...] = ()
    connect_timeout: float = 10.0  # seconds of wall time, for each hop
    windows_shell: WindowsShell | None = None  # None for Linux
    follows_node: bool = False  # the address is that which the Node or its container has now, not one of the inventory

    @property
    def label(self) -> str:
        """Name, login and address, for messages."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.name} ({self.user}@{address}:{self.port})"

    @property
    def sudo_prefix(self) -> tuple[str, ...]:
        """Prefix of commands that run as root: sudo without a prompt, or nothing for root and for ``sudo: false``.

        Windows has none: an administrator's login has all rights.
        """
        return ("sudo", "-n", "--") if self.sudo and self.user != "root" and self.windows_shell is None else ()


@dataclass(frozen=True, slots=True)
class LocalUser:
    """The local user: login, the home of ``~``, and the directory of the inventory file."""

    user: str
    home: Path
    base: Path = Path()

    def path(self, text: str) -> Path:
        """Absolute path of ``text``: ``~/x`` is in the home, a relative path relative to the inventory file."""
        if text == "~" or text.startswith("~/"):
            return self.home / text[2:]
        return self.base / text


def host_settings(inventory: Inventory, key: str, local: LocalUser, address: str = "") -> HostSettings:
    """Settings of the host ``key``; ``address`` (of the Node object) is used where the inventory has none.

    Each hop is reached through the hops before it, whatever its own ``proxyJump``; so is a host that is also a hop.
    Raises UsageError for a bad hop.
    """
    host = inventory.hosts.get(key, Host())
    jumps = tuple(_hop(inventory, name, local) for name in jump_names(inventory, key))
    settings = _merge(key, host.address or address or key, host, inventory.defaults, local, jumps)
    shell = WindowsShell(host.shell or WindowsShell.CMD) if host.os == "windows" else None
    return replace(settings, follows_node=bool(address) and not host.address, windows_shell=shell)


def jump_names(inventory: Inventory, key: str) -> list[str]:
    """The jump hosts on the path to the host ``key``, as written in the inventory."""
    names: list[str] = _first_set(inventory.hosts.get(key, Host()).proxy_jump, inventory.defaults.proxy_jump, [])
    return names[: names.index(key)] if key in names else names


def _hop(inventory: Inventory, text: str, local: LocalUser) -> HostSettings:
    if text in inventory.hosts:
        host = inventory.hosts[text]
        return _merge(text, host.address or text, host, inventory.defaults, local)
    match = _HOP.fullmatch(text)
    port = int(match["port"] or 22) if match else 0
    if not match or not 1 <= port <= 65535:
        raise UsageError(
            f"proxyJump {text!r} is neither a host of the inventory nor an address",
            hint="write user@address:port, an IPv6 address in brackets",
        )
    address = match["v6"] or match["address"]
    connection = Connection(user=match["user"], port=port)
    return _merge(text, address, connection, inventory.defaults, local)


def _merge(
    name: str,
    address: str,
    own: Connection,
    defaults: Connection,
    local: LocalUser,
    jumps: tuple[HostSettings, ...] = (),
) -> HostSettings:
    identity = _first_set(own.identity_file, defaults.identity_file, None)
    timeout = _first_set(own.connect_timeout, defaults.connect_timeout, CONNECT_TIMEOUT)
    return HostSettings(
        name=name,
        address=address,
        user=_first_set(own.user, defaults.user, local.user),
        known_hosts=local.path(_first_set(own.known_hosts, defaults.known_hosts, "~/.ssh/known_hosts")),
        port=_first_set(own.port, defaults.port, 22),
        sudo=_first_set(own.sudo, defaults.sudo, True),
        identity_file=local.path(identity) if identity else None,
        agent=_first_set(own.agent, defaults.agent, True),
        jumps=jumps,
        connect_timeout=parse_duration(timeout),
    )


def _first_set(own: Any, default: Any, fallback: Any) -> Any:
    if own is not None:
        return own
    return fallback if default is None else default
