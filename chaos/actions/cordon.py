"""A node that takes no new pods."""

from __future__ import annotations

from chaos.actions._cordon import CordonBase
from chaos.actions._nodes import CORDONED


class Cordon(CordonBase):
    """Pods that run there stay. A node that was cordoned before stays so after undo."""

    name = "cordon"
    summary = "cordon the node: no new pod is scheduled there"
    example = "{name: cordon, action: cordon, target: victim}"
    proofs = (CORDONED,)
    unschedulable = True


ACTION = Cordon()
