"""Who is asked before machines of a real cluster go down."""

from __future__ import annotations

from collections.abc import Callable

from chaos.app.connect import ClusterConnection
from chaos.model.errors import Refused
from chaos.model.plan import Plan
from chaos.model.registry import PluginRegistry

Confirm = Callable[[Plan, ClusterConnection, list[str]], None]
"""Is shown the plan, the cluster and :func:`going_down` of them. Raises Refused where it is not to be done."""


def nodes_taken_down(plan: Plan, opened: ClusterConnection, catalogue: PluginRegistry) -> list[str]:
    """The machines that the plan takes down; none of a simulated cluster."""
    cluster = opened.inventory.cluster
    if cluster is None or cluster.simulated:
        return []
    return sorted({step.node for step in plan.steps if catalogue.actions[step.action].takes_down})


def always_confirm(plan: Plan, opened: ClusterConnection, down: list[str]) -> None:
    """It was said when it was asked for."""


def refuse_unconfirmed(plan: Plan, opened: ClusterConnection, down: list[str]) -> None:  # noqa: ARG001 - as Agree
    """Raises Refused where a machine goes down: there is nobody to ask."""
    if down:
        who = ", ".join(down)
        raise Refused(f"{who} would go down, and nobody has agreed to that", hint="agree=True says that it is meant")
