"""Host keys: pinned for a run, and verified with OpenSSH's known_hosts.

A node's later connections must present the key that an earlier connection of the run has seen.

Of known_hosts: plain, hashed and [host]:port names, wildcards, @revoked. Paramiko's reader ignores @revoked and
wildcards, so it would trust a revoked key. Certificates of hosts (@cert-authority) are for transport openssh.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import shlex
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from re import compile as compile_pattern
from threading import Lock
from typing import Protocol

from chaos.core.errors import AnotherMachine, NodefallError, Refused
from chaos.machines.local import read_trusted_file
from chaos.machines.sessions.settings import HostSettings

_MAX_BYTES = 64 << 20  # of known_hosts
_PATTERN_SIGNS = frozenset("*?!|")


class HostKeyPin:
    """The key of one host, as ``ssh-ed25519 SHA256:...``, ``container ID`` or ``machine ID``; "" until one is known.

    Thread safe.

    It is the key of the first connection, or the key that a plan or a journal recorded. A reinstalled host has
    a different key, and counts as a different machine.
    """

    def __init__(self) -> None:
        self._key = ""
        self._lock = Lock()

    @property
    def key(self) -> str:
        return self._key

    @property
    def type(self) -> str:
        """The type of the key: a host with several keys must present its key of this type."""
        return self._key.partition(" ")[0]

    def expect(self, key: str) -> None:
        """Set the key, unless a connection has seen one already."""
        with self._lock:
            self._key = self._key or key

    def verify(self, key: str, label: str) -> None:
        """Check the key that the host ``label`` presents, before sending anything. Raises Refused if it differs."""
        self.expect(key)
        if _transport(key) != _transport(self._key):
            raise Refused(
                f"{label} presents {key}, but the run has {self._key}, the key of another transport",
                hint="set the transport of the host in the inventory to the one with which the run began",
            )
        if key != self._key:
            raise AnotherMachine(
                f"the address of {label} now leads to a different machine: it presents the host key {key}, "
                f"but the machine of this run has {self._key}",
                hint="correct the address of the host in the inventory; a reinstalled machine is a different one",
            )


def _transport(key: str) -> str:
    """The transport that presents such keys: certificates come from WinRM, IDs from engines and pods, all others from
    SSH.
    """
    word = key.partition(" ")[0]
    return {"certificate": word, "container": "ID", "machine": "ID", "system": "ID"}.get(word, "ssh")


class HostKeyPins:
    """The host key pins of all nodes. Thread safe."""

    def __init__(self) -> None:
        self._pins: defaultdict[str, HostKeyPin] = defaultdict(HostKeyPin)
        self._lock = Lock()

    def of(self, node: str) -> HostKeyPin:
        """The pin of a node, created when first needed."""
        with self._lock:
            return self._pins[node]


class Key(Protocol):
    """A public key, such as paramiko's."""

    def get_name(self) -> str: ...

    def asbytes(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of known_hosts."""

    line: int
    marker: str
    names: tuple[str, ...]
    type: str
    key: bytes

    def covers(self, name: str) -> bool:
        """Whether a name matches and no negated pattern does."""
        matching = [n for n in self.names if not n.startswith("!") and _matches(n, name)]
        return bool(matching) and not any(_matches(n[1:], name) for n in self.names if n.startswith("!"))


def parse_known_hosts(text: str) -> tuple[Entry, ...]:
    """Entries of a file; comments and malformed lines are skipped, as in OpenSSH."""
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#"):
            continue
        try:
            key = base64.b64decode(fields[2], validate=True)
        except ValueError:  # of binascii, and for a character beyond ASCII
            continue
        entries.append(Entry(number, marker, tuple(fields[0].split(",")), fields[1], key))
    return tuple(entries)


def load_known_hosts(settings: HostSettings) -> tuple[Entry, ...]:
    """Entries of the host's known_hosts. Raises Refused."""
    return read_known_hosts(settings.known_hosts)


def read_known_hosts(path: Path) -> tuple[Entry, ...]:
    """The entries of a file; empty if it does not exist. Raises Refused if it is unreadable, or others can write it."""
    try:
        return parse_known_hosts(read_trusted_file(path, _MAX_BYTES).decode("utf-8", "replace"))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}", hint="check knownHosts in the inventory") from error


def known_hosts_name(settings: HostSettings) -> str:
    """The host's name as written in known_hosts."""
    address = settings.address.lower()
    return address if settings.port == 22 else f"[{address}]:{settings.port}"


def known_key_types(entries: Iterable[Entry], name: str) -> tuple[str, ...]:
    """The types of a host's known keys, which the handshake prefers."""
    return tuple(dict.fromkeys(e.type for e in entries if not e.marker and e.covers(name)))


def fingerprint(key: bytes) -> str:
    """Fingerprint as printed by ``ssh-keygen -l``."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def describe_key(key: Key) -> str:
    """Type and fingerprint."""
    return f"{key.get_name()} {fingerprint(key.asbytes())}"


def verify(
    entries: Iterable[Entry], settings: HostSettings, key: Key, via: tuple[HostSettings, ...] = (), pinned: str = ""
) -> None:
    """Raise Refused unless the host's key is known and not revoked.

    ``pinned`` is the key that the machine of the Node presented before, as :func:`describe_key` has it. The Node may
    have another address since, which known_hosts does not have, or has for another machine: the same key then counts
    under any of its names.
    """
    entries, name, offered = tuple(entries), known_hosts_name(settings), key.asbytes()
    of_host = [e for e in entries if e.covers(name)]
    revoked = next((e for e in of_host if e.marker == "@revoked" and e.key == offered), None)
    if revoked:
        raise _revoked_key_error(settings, key, revoked)
    known = [e for e in of_host if not e.marker]
    if any(e.key == offered for e in known) or (
        settings.follows_node and pinned == describe_key(key) and _is_known_elsewhere(entries, offered)
    ):
        return
    changed = next((e for e in known if e.type == key.get_name()), None)
    if changed:
        raise _changed_key_error(settings, key, changed, via)
    raise _unknown_key_error(settings, key, of_host, via)


def _is_known_elsewhere(entries: Iterable[Entry], key: bytes) -> bool:
    """Whether known_hosts has the key under any name, and not as revoked."""
    markers = {e.marker for e in entries if e.key == key}
    return "" in markers and "@revoked" not in markers


def scan_command(settings: HostSettings, via: tuple[HostSettings, ...] = ()) -> str:
    """The command that adds the host's keys to known_hosts; it scans from the last hop if there is one."""
    scan = f"ssh-keyscan -p {settings.port} {shlex.quote(settings.address)}"
    if via:
        first = f"-J {','.join(_uri(h) for h in via[:-1])} " if via[:-1] else ""
        scan = f"ssh {first}{_uri(via[-1])} {scan}"
    return f"{scan} >> {shlex.quote(str(settings.known_hosts))}"


def _unknown_key_error(
    settings: HostSettings, key: Key, of_host: list[Entry], via: tuple[HostSettings, ...]
) -> NodefallError:
    known = [e for e in of_host if not e.marker]
    others = f"; only {', '.join(e.type for e in known)} is known" if known else ""
    hint = f"{_comparison_hint(key)}; if they are equal, run: {scan_command(settings, via)}"
    if any(entry.marker == "@cert-authority" for entry in of_host):
        others += "; an authority for it is known"
        hint = "use transport: openssh, which accepts certificates of hosts (@cert-authority)"
    message = f"the host key of {settings.label} is not in {settings.known_hosts}: {describe_key(key)}{others}"
    return Refused(message, hint=hint)


def _changed_key_error(settings: HostSettings, key: Key, entry: Entry, via: tuple[HostSettings, ...]) -> NodefallError:
    forget = f"ssh-keygen -R {shlex.quote(known_hosts_name(settings))} -f {shlex.quote(str(settings.known_hosts))}"
    return AnotherMachine(
        f"the host key of {settings.label} has changed: {describe_key(key)}, but "
        f"{settings.known_hosts}:{entry.line} has {fingerprint(entry.key)}; the connection may be intercepted",
        hint=f"{_comparison_hint(key)}; if the host was reinstalled, run: {forget} && {scan_command(settings, via)}",
    )


def _revoked_key_error(settings: HostSettings, key: Key, entry: Entry) -> NodefallError:
    return Refused(
        f"the host key of {settings.label} is revoked: {describe_key(key)} ({settings.known_hosts}:{entry.line})",
        hint="remove the old key, create a new one (`ssh-keygen -A`), and never use a revoked one",
    )


def _comparison_hint(key: Key) -> str:
    kind = key.get_name().removeprefix("ssh-").split("-")[0]
    return f"compare it with `ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub` on the host's console"


def _uri(hop: HostSettings) -> str:
    address = f"[{hop.address}]" if ":" in hop.address else hop.address
    return shlex.quote(f"ssh://{hop.user}@{address}:{hop.port}")


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("|1|"):
        return _matches_hash(pattern, name)
    # Only * and ? are special in OpenSSH; [ is part of [host]:port
    return bool(compile_pattern(translate(pattern.lower().replace("[", "[[]"))).match(name))


def _matches_hash(pattern: str, name: str) -> bool:
    """Whether ``|1|salt|HMAC-SHA1(salt, name)`` matches; both parts are base64 (HashKnownHosts of ssh_config)."""
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in pattern[3:].split("|"))
    except ValueError:
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), "sha1").digest(), digest)


class KnownKeys:
    """An index of known_hosts for large inventories. Keys look like ``ssh-ed25519 SHA256:...``."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._by_name: defaultdict[str, set[str]] = defaultdict(set)
        self._patterns: list[tuple[Entry, str]] = []
        for entry in entries:
            if entry.marker:
                continue
            key = f"{entry.type} {fingerprint(entry.key)}"
            if any(_PATTERN_SIGNS.intersection(name) for name in entry.names):
                self._patterns.append((entry, key))
                continue
            for name in entry.names:
                self._by_name[name.lower()].add(key)

    def of(self, name: str) -> frozenset[str]:
        """The keys of the host with this name in known_hosts."""
        matching = {key for entry, key in self._patterns if entry.covers(name)}
        return frozenset(matching | self._by_name.get(name, set()))
