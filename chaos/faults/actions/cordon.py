"""A node that takes no new pods."""

from __future__ import annotations

from chaos.faults.actions._cordon import CordonBase
from chaos.faults.actions._nodes import CORDONED


class Cordon(CordonBase):
    """Pods on the node stay. Undo leaves a node cordoned that was cordoned before."""

    name = "cordon"
    summary = "cordon the node: no new pod is scheduled there"
    example = "{name: cordon, action: cordon, target: victim}"
    proofs = (CORDONED,)
    unschedulable = True


ACTION = Cordon()
