"""Fail-safe timers of earlier runs."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need


class FailsafeTimers(Check):
    """A timer of another run would end this run's fault."""

    name = "failsafe-timers"
    summary = "no timer of an earlier run is left on the host"
    facts = ("failsafe-timers",)
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            if found := host.fact("failsafe-timers"):
                timers = ", ".join(found)
                message = f"{host.node} still has {timers} of an earlier run, which would end the fault of this one"
                hint = f"run nodefall undo --list; {_remedy(host.target.os, found[0])}"
                yield refusal(message, hint, host.node, frozenset({Need.HOST}))
            else:
                yield ok("no timer is left", host.node)


def _remedy(system: str, unit: str) -> str:
    """What to do without a pending undo. A task of Windows stays after it has run, and runs again at each boot."""
    if system == "windows":
        return f"if no undo is pending there, run schtasks /delete /tn {unit} /f on the host once it is not running"
    return "a timer without a pending undo elapses by itself"


CHECK = FailsafeTimers()
