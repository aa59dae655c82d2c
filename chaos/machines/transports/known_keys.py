"""The keys that known_hosts has of each host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from chaos.machines.transports.host_keys import Entry, fingerprint

_PATTERN_SIGNS = frozenset("*?!|")


class KnownKeys:
    """Index of a file, as an inventory may have a thousand hosts. Keys are like ``ssh-ed25519 SHA256:...``."""

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
        """Keys of the host with that name in known_hosts."""
        matching = {key for entry, key in self._patterns if entry.covers(name)}
        return frozenset(matching | self._by_name.get(name, set()))
