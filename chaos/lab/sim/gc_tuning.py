"""What the store holds lives long and has no cycles: Python's garbage collector need not look at it again and again."""

from __future__ import annotations

import gc

from chaos.lab.apiserver.store.store import Change, Store

_GROWTH = 500  # objects
_GENERATIONS = (50_000, 20, 100)


class GcTuner:
    """Sets what the collector looks at as the store grows beyond its largest size; a cycle can be missed only then."""

    def __init__(self, store: Store) -> None:
        self._size, self._most = 0, 0
        gc.set_threshold(*_GENERATIONS)
        store.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.type == "ADDED":
            self._size += 1
            if self._size > self._most + _GROWTH:
                self._most = self._size
                gc.freeze()
        elif change.type == "DELETED":
            self._size -= 1
