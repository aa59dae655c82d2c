"""Pending undo of earlier runs."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, list_error_notes, ok, refusal
from chaos.preflight.observations import ClusterObservations


class PendingUndo(Check):
    """A run on a cluster that another run left broken would blame the cluster for that fault."""

    name = "pending-undo"
    summary = "no earlier run has a pending undo"
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for run, description in sorted(observations.pending_undo.items()):
            hint = f"run nodefall undo {run}, with --inventory if it ran on another machine"
            yield refusal(f"run {run} has a pending undo: {description}", hint)
        yield from list_error_notes(observations, "configmaps")
        if not observations.pending_undo and "configmaps" not in observations.list_errors:
            yield ok("no undo is pending")


CHECK = PendingUndo()
