"""Who is at work on the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.doctor.check import Check, Diagnosis, ok, refusal, unlisted
from chaos.doctor.signs import Signs


class Lock(Check):
    """One at a time."""

    name = "lock"
    summary = "nobody else is at work on the cluster"
    final = True

    def look(self, signs: Signs) -> Iterator[Diagnosis]:
        yield from unlisted(signs, "leases")
        if signs.holder:
            mend = "let it end; nodefall status shows it, nodefall abort stops it"
            yield refusal(f"{signs.holder} is at work on this cluster", mend)
        elif "leases" not in signs.unlisted:
            yield ok("nobody is at work")


CHECK = Lock()
