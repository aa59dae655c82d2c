"""A node that takes new pods again."""

from __future__ import annotations

from chaos.faults.actions._cordon import CordonBase
from chaos.faults.actions._nodes import UNCORDONED


class Uncordon(CordonBase):
    """For a node that a drain or another tool cordoned. Undo cordons a node again that was cordoned before."""

    name = "uncordon"
    summary = "uncordon the node: pods are scheduled there again"
    example = "{name: uncordon, action: uncordon, target: victim}"
    proofs = (UNCORDONED,)
    unschedulable = False


ACTION = Uncordon()
