"""Containers as hosts."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, note, ok
from chaos.preflight.observations import ClusterObservations, Need


class SharedKernel(Check):
    """A fault of the kernel, the clock or the memory affects all its users: such steps are refused."""

    name = "shared-kernel"
    summary = "the host does not share its kernel"
    systems = frozenset({"linux"})
    facts = ("shared-kernel",)

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            if host.fact("shared-kernel"):
                message = f"{host.node} is a container: its kernel and clock are shared with other programs"
                hint = "use a dedicated machine for steps on the kernel or the clock: they are refused here"
                yield note(message, hint, host.node, frozenset({Need.HOST}))
            elif host.fact("shared-kernel") is False:
                yield ok("the kernel is not shared", host.node)


CHECK = SharedKernel()
