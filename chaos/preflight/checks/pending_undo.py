"""Pending undo of earlier runs."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, list_error_notes, note, ok, refusal
from chaos.preflight.observations import ClusterObservations

_READ = ("configmaps", "nodes")


class PendingUndo(Check):
    """A run on a cluster that another run left broken would blame the cluster for that fault."""

    name = "pending-undo"
    summary = "no earlier run has a pending undo"
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for finding in observations.pending_undo:
            if finding.run and finding.run == observations.lock_run:
                why = f"run {finding.run} is under way, by {observations.lock_holder}: it has still to undo"
                yield note(f"{why} {finding.description}", "wait for it to end (nodefall status)")
            else:
                yield refusal(str(finding), finding.hint)
        for mark in observations.stale_marks:
            why = f"{mark.node} has the mark of an earlier run ({mark}), but the values from before that step"
            yield note(why, f"the next run removes the mark; or run {mark.removal}")
        yield from list_error_notes(observations, *_READ)
        if not observations.pending_undo and not any(path in observations.list_errors for path in _READ):
            yield ok("no undo is pending")


CHECK = PendingUndo()
