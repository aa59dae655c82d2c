"""What earlier runs still owe."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.doctor.check import Check, Diagnosis, ok, refusal, unlisted
from chaos.doctor.signs import Signs


class Debts(Check):
    """A run on top of what another has left broken would blame the cluster for it."""

    name = "debts"
    summary = "no earlier run still owes an undo"
    final = True

    def look(self, signs: Signs) -> Iterator[Diagnosis]:
        for run, owed in sorted(signs.debts.items()):
            mend = f"nodefall undo {run}, with --inventory if it ran on another machine"
            yield refusal(f"run {run} still owes {owed}", mend)
        yield from unlisted(signs, "configmaps")
        if not signs.debts and "configmaps" not in signs.unlisted:
            yield ok("nothing is owed")


CHECK = Debts()
