"""The cluster's lock."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, list_error_notes, ok, refusal
from chaos.preflight.observations import ClusterObservations


class Lock(Check):
    """One run at a time."""

    name = "lock"
    summary = "no other run is active on the cluster"
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        yield from list_error_notes(observations, "leases")
        if observations.lock_holder:
            hint = "wait for it to end (nodefall status), or stop it (nodefall abort)"
            yield refusal(f"{observations.lock_holder} has a run on this cluster", hint)
        elif "leases" not in observations.list_errors:
            yield ok("no run is active")


CHECK = Lock()
