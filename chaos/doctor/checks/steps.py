"""Whether each step can be done, and taken back."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.doctor.check import Check, Diagnosis, ok, refused
from chaos.doctor.signs import Signs


class Steps(Check):
    """As the actions themselves say, from what is known of the host."""

    name = "steps"
    summary = "each step of the experiment can be done on the node, and taken back"
    final = True
    fit = True

    def look(self, signs: Signs) -> Iterator[Diagnosis]:
        found = [
            refused(use, *why, host=node)
            for use in signs.uses
            for node in ("", *use.nodes)
            if not node or (node in signs.hosts and not signs.hosts[node].error)
            if (why := use.prepare(node))
        ]
        yield from found
        if not found and signs.uses:
            yield ok("they can be done, and taken back")


CHECK = Steps()
