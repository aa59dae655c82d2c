"""Containers as hosts."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, note, ok
from chaos.preflight.observations import ClusterObservations, Need


class SharedKernel(Check):
    """What is done to the kernel, the clock or the memory is done to everybody on it: such steps are refused."""

    name = "shared-kernel"
    summary = "the host has a kernel of its own"
    facts = ("shared-kernel",)

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        for host in signs.reachable_hosts():
            if host.fact("shared-kernel"):
                told = f"{host.node} is a container: its kernel and clock are others' too"
                mend = "steps that touch them are refused; use a machine of its own for those"
                yield note(told, mend, host.node, frozenset({Need.HOST}))
            elif host.fact("shared-kernel") is False:
                yield ok("it is its own", host.node)


CHECK = SharedKernel()
