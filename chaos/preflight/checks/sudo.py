"""Root on the hosts."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need


class Sudo(Check):
    """As the login user, or through sudo that does not ask."""

    name = "sudo"
    summary = "commands run as root, through sudo without a password where the login user is another"
    facts = ("root",)
    is_final = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        for host in signs.reachable_hosts():
            if host.fact("root"):
                yield ok("commands run as root", host.node)
                continue
            why = "" if "root" in host.target.facts else f": {host.unknown_reason('root')}"
            mend = "let the login user run sudo without a password, or set sudo: true in the inventory"
            yield refusal(f"{host.node}: commands do not run as root{why}", mend, host.node, frozenset({Need.ROOT}))


CHECK = Sudo()
