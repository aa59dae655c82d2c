"""Tuning of Python's garbage collector: objects of the store are long-lived and have no reference cycles."""

from __future__ import annotations

import gc

from chaos.lab.apiserver.store.store import Change, Store

_GROWTH = 500  # objects
_GENERATIONS = (50_000, 20, 100)


class GcTuner:
    """Excludes live objects from collection each time the store has grown by 500 objects beyond its largest size."""

    def __init__(self, store: Store) -> None:
        self._size, self._largest = 0, 0
        gc.set_threshold(*_GENERATIONS)
        store.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.type == "ADDED":
            self._size += 1
            if self._size > self._largest + _GROWTH:
                self._largest = self._size
                gc.freeze()
        elif change.type == "DELETED":
            self._size -= 1
