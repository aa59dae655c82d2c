"""The files that are written: an inventory with a comment for each choice, and the host keys of its machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chaos.app.discovery.entries import Entries, is_section
from chaos.app.discovery.proposal import Proposal
from chaos.core.clock import SystemClock
from chaos.core.errors import Unreachable
from chaos.core.inventory import Inventory
from chaos.core.text import printable
from chaos.documents.yaml_text import inline
from chaos.machines.concurrency import run_concurrently
from chaos.machines.sessions.host_keys import Entry, fingerprint, known_hosts_name, load_known_hosts
from chaos.machines.sessions.settings import HostSettings, LocalUser, host_settings
from chaos.machines.transports.key_scan import ScannedKey, scan

_WIDTH = 140  # a longer line has its comment above
KeyStatus = Literal["known", "new", "changed", "revoked", "unreachable"]


def render(proposal: Proposal, nodefall: str) -> str:
    """The text of the inventory; ``nodefall``: the version that writes it."""
    head = [
        f"Written by nodefall {nodefall} init; yours to change. Paths are relative to this file.",
        *proposal.head,
        *(f"Note: {note}." for note in proposal.notes),
    ]
    return "\n".join([*(f"# {printable(line)}" for line in head), *_lines(proposal.entries, "")]) + "\n"


def _lines(entries: Entries, indent: str) -> Iterator[str]:
    for entry in entries:
        comment = f"# {printable(entry.reason)}" if entry.reason else ""
        text = f"{indent}{inline(entry.key)}:" + ("" if is_section(entry) else f" {inline(entry.value)}")
        yield from _with_comment(text, comment, indent)
        if is_section(entry):
            yield from _lines(entry.value, f"{indent}  ")


def _with_comment(text: str, comment: str, indent: str) -> Iterable[str]:
    if not comment:
        return (text,)
    joined = f"{text}  {comment}"
    return (joined,) if len(joined) <= _WIDTH else (f"{indent}{comment}", text)


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
