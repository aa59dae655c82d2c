"""Pending undo of earlier runs, as a run or the doctor reports it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Source(StrEnum):
    """Where a pending undo is recorded."""

    JOURNAL = "journal"  # in a run directory of this machine
    CLUSTER = "cluster"  # the copy of the journal, a ConfigMap
    NODE = "node"  # a mark on a Node


class PendingUndoFinding(Struct, frozen=True, order=True):
    """``description``: the steps to be undone, or why they are unknown. ``hint``: what ends this, in the imperative.

    ``run`` is "" if it is unknown.
    """

    run: str
    source: Source
    description: str
    hint: str

    def __str__(self) -> str:
        run = f"run {self.run}" if self.run else "an unknown run"
        return f"{run} has a pending undo: {self.description}"
