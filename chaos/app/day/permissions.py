"""Permissions that the run of a game day needs, besides those of its experiments."""

from __future__ import annotations

from chaos.app.gameday import LoadedGameDay
from chaos.app.load import required_permissions
from chaos.core.inventory import Inventory
from chaos.core.labels import GAME_DAY_PREFIX, LOCK_NAMESPACE
from chaos.core.permission import Permission


def day_permissions(day: LoadedGameDay, inventory: Inventory | None) -> list[Permission]:
    """Permissions of all entries, and for the lock of the day; its state is in a ConfigMap as journals are."""
    namespace = inventory.cluster.namespace if inventory and inventory.cluster else LOCK_NAMESPACE
    lease = f"{GAME_DAY_PREFIX}{day.document.metadata.name}"
    found = {
        Permission("coordination.k8s.io", "leases", verb, namespace, lease) for verb in ("get", "update", "delete")
    }
    for entry in day.entries:
        found.update(required_permissions(entry.loaded, inventory))
    return sorted(permission for permission in found if not _is_covered(permission, found))


def _is_covered(permission: Permission, others: set[Permission]) -> bool:
    return any(other != permission and other.covers(permission) for other in others)
