"""Root on the hosts."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need


class Sudo(Check):
    """The login user is root, or sudo needs no password."""

    name = "sudo"
    summary = "commands run as root, through sudo without a password unless the login user is root"
    systems = frozenset({"linux"})
    facts = ("root",)
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            if host.fact("root"):
                yield ok("commands run as root", host.node)
                continue
            why = "" if "root" in host.target.facts else f": {host.unknown_reason('root')}"
            hint = "allow the login user sudo without a password, or set sudo: true in the inventory"
            yield refusal(f"{host.node}: commands do not run as root{why}", hint, host.node, frozenset({Need.ROOT}))


CHECK = Sudo()
