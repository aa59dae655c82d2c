"""The Windows firewall, whose rules cut a node off."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, note, ok
from chaos.preflight.observations import ClusterObservations, Need


class WindowsFirewall(Check):
    """A partition is refused where rules do not act, by its own preparation; this names the hosts beforehand."""

    name = "windows-firewall"
    summary = "rules of the Windows firewall act in the profiles in use, so that a partition is possible"
    facts = ("firewall-state",)
    systems = frozenset({"windows"})

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            state: dict[str, str] | None = host.fact("firewall-state")
            if state is None:
                continue
            idle = [f"{profile}: {value}" for profile, value in sorted(state.items()) if value != "on"]
            if idle:
                message = (
                    f"{host.node}: rules of the Windows firewall have no effect ({', '.join(idle)}), so a partition of"
                    " the node is refused"
                )
                hint = "turn the firewall on, and let the group policy apply local rules; AKS keeps it off"
                yield note(message, hint, host.node, frozenset({Need.HOST}))
            else:
                yield ok(f"rules act in {', '.join(sorted(state))}", host.node)


CHECK = WindowsFirewall()
