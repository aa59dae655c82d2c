"""Timers that earlier runs have planted."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need


class FailsafeTimers(Check):
    """They would heal what this run breaks."""

    name = "timers"
    summary = "no timer of an earlier run is left on the host"
    facts = ("planted-timers",)
    is_final = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        for host in signs.reachable_hosts():
            if planted := host.fact("planted-timers"):
                timers = ", ".join(planted)
                told = f"{host.node} still has {timers} of an earlier run, which would end what this one does"
                mend = "see nodefall undo --list; a timer that nobody owes elapses by itself"
                yield refusal(told, mend, host.node, frozenset({Need.HOST}))
            else:
                yield ok("none is left", host.node)


CHECK = FailsafeTimers()
