"""``systemd=VERSION``: of all Linux hosts; what differs between versions is in facts 1.4 and 1.7."""

from __future__ import annotations

from chaos.cluster.snapshot.contents import Contents, name_of
from chaos.cluster.snapshot.whatif.change import Apply, ChangeError, ChangeKind

_OLDEST = 251


def _parse(text: str) -> Apply:
    if not text.isascii() or not text.isdigit() or not _OLDEST <= int(text) < 1000:
        raise ChangeError(f"not a version of systemd: {text!r}", f"write a number from {_OLDEST}, as 257")

    def apply(contents: Contents) -> str:
        for node in contents.of("nodes"):
            contents.hosts.setdefault(name_of(node), {})["systemd"] = int(text)
        return f"every host has systemd {int(text)}"

    return apply


KIND = ChangeKind("systemd", "VERSION", "version of systemd on all hosts, from 251", _parse)
