"""Pod counts by owner, updated with every change: a sync need not list thousands of pods."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from chaos.lab.apiserver.store import Change
from chaos.lab.objects.accessors import TERMINAL, Object, controller_of, is_ready


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
        before, after = change.before, change.object if change.type != "DELETED" else None
        if before is not None and after is not None and _has_same_owner(before, after):
            old, new = _classes(before), _classes(after)
            if old == new:
                return
        if before is not None:
            self._count(before, -1)
        if after is not None:
            self._count(after, 1)

    def _count(self, pod: Object, by: int) -> None:
        owner = controller_of(pod)
        if owner is None or owner["kind"] != self._kind:
            return
        counts, (active, ready, terminating) = self._by_owner[owner["uid"]], _classes(pod)
        counts.pods += by
        counts.active += by * active
        counts.ready += by * ready
        counts.terminating += by * terminating
        if not counts.pods:
            del self._by_owner[owner["uid"]]


def _has_same_owner(before: Object, after: Object) -> bool:
    return before["metadata"].get("ownerReferences") is after["metadata"].get("ownerReferences")


def _classes(pod: Object) -> tuple[bool, bool, bool]:
    """Whether the pod is active, active and ready, terminating."""
    if pod.get("status", {}).get("phase") in TERMINAL:
        return False, False, False
    if "deletionTimestamp" in pod["metadata"]:
        return False, False, True
    return True, is_ready(pod), False
