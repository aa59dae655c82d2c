"""The lock of a cluster that no other process knows of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.cluster.lease_lock import Identity

HOLDER = "rehearsal"


@dataclass
class SoleHolder:
    """Implements ``chaos.engine.session.HeldLock``: it is held for as long as the cluster exists."""

    namespace: str
    identity: Identity = field(default_factory=lambda: Identity(HOLDER, {}))
    loss: str = ""

    def renew(self) -> bool:
        return True

    def check(self) -> None:
        """Return: the lock is held."""

    def blocked(self) -> str:
        return ""

    def regain(self, pause: Callable[[], object]) -> str:  # noqa: ARG002 - of the port
        return ""
