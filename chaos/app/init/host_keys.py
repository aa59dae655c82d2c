"""Host keys of the machines that an inventory reaches over SSH: compared with known_hosts, and written if accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chaos.core.clock import SystemClock
from chaos.core.errors import Unreachable
from chaos.core.inventory import Inventory
from chaos.machines.concurrency import run_concurrently
from chaos.machines.transports.connection import ScannedKey, scan
from chaos.machines.transports.host_keys import Entry, fingerprint, known_hosts_name, load_known_hosts
from chaos.machines.transports.settings import HostSettings, LocalUser, host_settings

KeyStatus = Literal["known", "new", "changed", "revoked", "unreachable"]


@dataclass(frozen=True, slots=True)
class HostKey:
    """The key that a host presents; ``error`` says why there is none."""

    node: str
    name: str  # in known_hosts
    status: KeyStatus
    type: str = ""
    fingerprint: str = ""
    line: str = ""  # of known_hosts
    error: str = ""


def read_host_keys(inventory: Inventory, addresses: Mapping[str, str], local: LocalUser) -> list[HostKey]:
    """The keys of hosts by node, at their ``addresses``. No login is tried. Raises Refused."""
    settings = {node: host_settings(inventory, node, local, address) for node, address in addresses.items()}
    if not settings:
        return []
    known = load_known_hosts(next(iter(settings.values())))  # one file: that of defaults

    def read(node: str) -> HostKey:
        return _read(node, settings[node], known)

    clock = SystemClock()
    try:
        return run_concurrently(list(settings), read, clock)
    finally:
        clock.close()


def _read(node: str, settings: HostSettings, known: Iterable[Entry]) -> HostKey:
    name = known_hosts_name(settings)
    try:
        key = scan(settings)
    except Unreachable as error:
        return HostKey(node, name, "unreachable", error=error.message)
    return HostKey(
        node, name, _status(name, key, known), key.type, fingerprint(key.blob), f"{name} {key.type} {key.base64}"
    )


def _status(name: str, key: ScannedKey, known: Iterable[Entry]) -> KeyStatus:
    entries = [entry for entry in known if entry.covers(name)]
    if any(entry.marker == "@revoked" and entry.key == key.blob for entry in entries):
        return "revoked"
    plain = [entry for entry in entries if not entry.marker]
    if any(entry.key == key.blob for entry in plain):
        return "known"
    return "changed" if any(entry.type == key.type for entry in plain) else "new"


def known_hosts_text(keys: Iterable[HostKey]) -> str:
    """Lines for the keys that are new or known, never for one that has changed or is revoked."""
    return "".join(f"{line}\n" for line in dict.fromkeys(key.line for key in keys if key.status in ("new", "known")))


def known_hosts_path(out: Path) -> Path:
    """The file of accepted keys beside an inventory."""
    return out.with_suffix(".known_hosts")
