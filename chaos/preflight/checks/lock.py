"""Who is at work on the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, list_error_notes, ok, refusal
from chaos.preflight.observations import ClusterObservations


class Lock(Check):
    """One at a time."""

    name = "lock"
    summary = "nobody else is at work on the cluster"
    is_final = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        yield from list_error_notes(signs, "leases")
        if signs.lock_holder:
            mend = "let it end; nodefall status shows it, nodefall abort stops it"
            yield refusal(f"{signs.lock_holder} is at work on this cluster", mend)
        elif "leases" not in signs.list_errors:
            yield ok("nobody is at work")


CHECK = Lock()
