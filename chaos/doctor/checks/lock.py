"""Who is at work on the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.doctor.check import Check, Diagnosis, ok, refusal, list_error_notes
from chaos.doctor.signs import ClusterObservations


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
