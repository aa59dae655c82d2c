"""Control planes that must go on deciding."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.kube import is_ready
from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, Need, fault_groups


class Quorum(Check):
    """etcd needs more than half of its members to write anything (https://etcd.io/docs/v3.5/faq/), undo's too."""

    name = "quorum"
    summary = "more than half of the control planes stay Ready"
    is_final = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        members = signs.view.etcd_members()
        for host, group in fault_groups(signs):
            lost = sorted(set(members) & set(group))
            left = sum(name not in group and is_ready(signs.view.nodes[name]) for name in members)
            if lost and left <= len(members) // 2:
                told = f"without {', '.join(lost)} only {left} of {len(members)} control planes would be Ready"
                mend = "the cluster could not be written to, not even to undo; choose other targets"
                yield refusal(told, mend, host, frozenset({Need.ENDS_PODS}))
            else:
                yield ok("enough control planes stay", host)


CHECK = Quorum()
