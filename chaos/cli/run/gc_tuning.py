"""Tuning of Python's garbage collector for a run: its observations are long-lived and have no reference cycles."""

from __future__ import annotations

import gc

_GENERATIONS = (50_000, 20, 100)


def tune_gc() -> None:
    """Collect rarely, and examine only the objects that are newer than the last collection.

    Pauses then do not grow with the timeline. Cyclic garbage that survives its first collection is not freed before
    :func:`free_finished_run`. For a process that ends with its runs, as it changes the whole process.
    """
    gc.set_threshold(*_GENERATIONS)
    gc.callbacks.append(_freeze_survivors)


def free_finished_run() -> None:
    """Free what a finished run has left, before the next one of the process."""
    gc.unfreeze()
    gc.collect()


def _freeze_survivors(phase: str, _: dict[str, int]) -> None:
    if phase == "stop":
        gc.freeze()
