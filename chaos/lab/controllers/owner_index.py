"""Pod counts by owner, updated with every change: a sync need not list thousands of pods."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from chaos.lab.apiserver.store.store import Change
from chaos.lab.objects.accessors import Object, controller_of, is_active, is_ready, is_terminating


@dataclass(slots=True)
class PodCounts:
    """``active`` and ``terminating`` by IsPodActive and IsPodTerminating; ``ready``: active and Ready."""

    pods: int = 0
    active: int = 0
    ready: int = 0
    terminating: int = 0


class OwnerIndex:
    """Counts of pods by uid of an owner of one kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._by_owner: defaultdict[str, PodCounts] = defaultdict(PodCounts)

    def of(self, uid: str) -> PodCounts:
        """Counts of the owner's pods; updated in place with the next change."""
        return self._by_owner.get(uid) or PodCounts()

    def on_change(self, change: Change) -> None:
        """Handle a change of a pod."""
        if change.before is not None:
            self._count(change.before, -1)
        if change.type != "DELETED":
            self._count(change.object, 1)

    def _count(self, pod: Object, by: int) -> None:
        owner = controller_of(pod)
        if owner is None or owner["kind"] != self._kind:
            return
        counts = self._by_owner[owner["uid"]]
        counts.pods += by
        if is_active(pod):
            counts.active += by
            counts.ready += by * is_ready(pod)
        elif is_terminating(pod):
            counts.terminating += by
        if not counts.pods:
            del self._by_owner[owner["uid"]]
