"""The Prometheus that experiments ask."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.doctor.check import Check, Diagnosis, ok, refused
from chaos.doctor.signs import Signs


class Prometheus(Check):
    """Each query is asked once."""

    name = "prometheus"
    summary = "the inventory's Prometheus answers the experiment's queries"
    final = True

    def look(self, signs: Signs) -> Iterator[Diagnosis]:
        asking = [use for use in signs.uses if use.unanswered is not None]
        for use in asking:
            if use.unanswered:
                yield refused(use, f"{use.name}: {use.unanswered[0]}", use.unanswered[1])
        if asking and not any(use.unanswered for use in asking):
            yield ok("it answers")


CHECK = Prometheus()
