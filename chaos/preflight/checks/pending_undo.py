"""What earlier runs still owe."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, list_error_notes, ok, refusal
from chaos.preflight.observations import ClusterObservations


class PendingUndo(Check):
    """A run on top of what another has left broken would blame the cluster for it."""

    name = "debts"
    summary = "no earlier run still owes an undo"
    is_final = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        for run, owed in sorted(signs.pending_undo.items()):
            mend = f"nodefall undo {run}, with --inventory if it ran on another machine"
            yield refusal(f"run {run} still owes {owed}", mend)
        yield from list_error_notes(signs, "configmaps")
        if not signs.pending_undo and "configmaps" not in signs.list_errors:
            yield ok("nothing is owed")


CHECK = PendingUndo()
