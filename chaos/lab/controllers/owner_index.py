"""The pods of each owner of one kind, counted change by change: a sync need not look at thousands of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from chaos.lab.apiserver.store.store import Change
from chaos.lab.objects.accessors import Object, controller_of, is_active, is_ready, is_terminating


@dataclass(slots=True)
class PodCounts:
    """``active`` and ``terminating`` as the controllers mean them; ``ready`` of the active ones."""

    pods: int = 0
    active: int = 0
    ready: int = 0
    terminating: int = 0


class OwnerIndex:
    """By the uid of the owner, which has to be of this kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._by_owner: defaultdict[str, PodCounts] = defaultdict(PodCounts)

    def of(self, uid: str) -> PodCounts:
        """As it is now; it moves on with the next change."""
        return self._by_owner.get(uid) or PodCounts()

    def on_change(self, change: Change) -> None:
        """To be told every change of a pod."""
        if change.before is not None:
            self._count(change.before, -1)
        if change.type != "DELETED":
            self._count(change.object, 1)

    def _count(self, pod: Object, by: int) -> None:
        owner = controller_of(pod)
        if owner is None or owner["kind"] != self._kind:
            return
        tally = self._by_owner[owner["uid"]]
        tally.pods += by
        if is_active(pod):
            tally.active += by
            tally.ready += by * is_ready(pod)
        elif is_terminating(pod):
            tally.terminating += by
        if not tally.pods:
            del self._by_owner[owner["uid"]]
