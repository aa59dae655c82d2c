"""Quorum of the control planes."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.kube import is_ready
from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need, fault_groups


class Quorum(Check):
    """etcd needs more than half of its members for every write (https://etcd.io/docs/v3.5/faq/), undo included."""

    name = "quorum"
    summary = "more than half of the control planes stay Ready"
    facts = ("control-plane-files",)
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        members = _members(observations)
        for host, group in fault_groups(observations):
            lost = sorted(set(members) & set(group))
            remaining = sum(name not in group and is_ready(observations.view.nodes[name]) for name in members)
            if lost and remaining <= len(members) // 2:
                message = f"without {', '.join(lost)} only {remaining} of {len(members)} control planes would be Ready"
                hint = "choose other targets: the cluster would reject all writes, those of undo included"
                yield refusal(message, hint, host, frozenset({Need.ENDS_PODS}))
            else:
                yield ok("enough control planes stay Ready", host)


def _members(observations: ClusterObservations) -> list[str]:
    """Nodes that run etcd, by labels, static pods and what their hosts show."""
    hosts = observations.reachable_hosts()
    shown = {host.node for host in hosts if any("etcd" in path for path in host.fact("control-plane-files") or ())}
    return sorted({*observations.view.etcd_members(), *shown})


CHECK = Quorum()
