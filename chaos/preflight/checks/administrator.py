"""Rights of an administrator on Windows hosts."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need


class Administrator(Check):
    """Services, firewall and tasks need an elevated login; a filtered one is a member of the group only."""

    name = "administrator"
    summary = "on Windows commands run with the rights of an administrator"
    facts = ("root",)
    systems = frozenset({"windows"})
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            if host.fact("root"):
                yield ok("commands run as administrator", host.node)
                continue
            why = "" if "root" in host.target.facts else f": {host.unknown_reason('root')}"
            hint = (
                "use a domain account that is an administrator there, or set LocalAccountTokenFilterPolicy for a local"
                " one: nodefall windows-rights prints both"
            )
            message = f"{host.node}: commands do not run with the rights of an administrator{why}"
            yield refusal(message, hint, host.node, frozenset({Need.ROOT}))


CHECK = Administrator()
