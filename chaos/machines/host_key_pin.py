"""Host keys that the connections of a run have seen: a node's later connections must present the same one."""

from __future__ import annotations

from collections import defaultdict
from threading import Lock

from chaos.core.errors import AnotherMachine, Refused


class HostKeyPin:
    """The key of one host, as ``ssh-ed25519 SHA256:...``, ``container ID`` or ``machine ID``; "" until one is known.

    Thread safe.

    It is the key of the first connection, or the one that a plan or a journal recorded. A host that was reinstalled has
    another key, and is another machine.
    """

    def __init__(self) -> None:
        self._key = ""
        self._lock = Lock()

    @property
    def key(self) -> str:
        return self._key

    @property
    def type(self) -> str:
        """The first word of the key: of several keys of a host, the one of this type is to be presented."""
        return self._key.partition(" ")[0]

    def expect(self, key: str) -> None:
        """Set the key, unless a connection has seen one already."""
        with self._lock:
            self._key = self._key or key

    def verify(self, key: str, label: str) -> None:
        """Compare what the host ``label`` presents, before anything is sent to it. Raises Refused for another key."""
        self.expect(key)
        if _transport(key) != _transport(self._key):
            raise Refused(
                f"{label} presents {key}, but the run has {self._key}, the key of another transport",
                hint="give the host the transport in the inventory that the run has begun with",
            )
        if key != self._key:
            raise AnotherMachine(
                f"the address of {label} has changed hands: it presents the host key {key}, "
                f"but the machine of this run has {self._key}",
                hint="correct the address of the host in the inventory; a machine that was reinstalled is another one",
            )


def _transport(key: str) -> str:
    """What presents such keys: WinRM a certificate, engines and pods the ID of a host, and SSH all other types."""
    word = key.partition(" ")[0]
    return {"certificate": word, "container": "ID", "machine": "ID", "system": "ID"}.get(word, "ssh")


class HostKeyPins:
    """One pin per node. Thread safe."""

    def __init__(self) -> None:
        self._pins: defaultdict[str, HostKeyPin] = defaultdict(HostKeyPin)
        self._lock = Lock()

    def of(self, node: str) -> HostKeyPin:
        """The pin of a node, made when first needed."""
        with self._lock:
            return self._pins[node]
