"""Updates of Windows that wait for a restart."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, warning
from chaos.preflight.observations import ClusterObservations, Need


class PendingReboot(Check):
    """Updates are completed during the shutdown and the start, for minutes, and may restart the machine once more."""

    name = "pending-reboot"
    summary = "no update of Windows waits for a restart"
    facts = ("pending-reboot",)
    systems = frozenset({"windows"})

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            marks = host.fact("pending-reboot")
            if marks:
                message = (
                    f"{host.node}: an update waits for a restart ({', '.join(marks)}): going down and coming back may"
                    " take minutes, and a second restart may follow"
                )
                yield warning(message, "restart the node before the run", host.node, frozenset({Need.DOWN}))
            elif marks is not None:
                yield ok("no update waits for a restart", host.node)


CHECK = PendingReboot()
