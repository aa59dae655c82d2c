"""Confirmation before a plan takes down machines of a real cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaos.app.connect import ClusterConnection
from chaos.core.errors import Refused
from chaos.core.experiment import Experiment
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The cluster of a plan. ``server``: the URL of its API server; ``version``: that of Kubernetes."""

    inventory: Inventory
    server: str
    uid: str
    version: str


Confirm = Callable[[Plan, ClusterInfo, list[str]], None]
"""Called with a plan, its cluster and the real machines that would go down. Raises Refused to cancel the run."""


def nodes_taken_down(plan: Plan, connection: ClusterConnection, experiment: Experiment) -> list[str]:
    """Names of the real machines that the plan takes down; none in a simulated cluster."""
    cluster = connection.inventory.cluster
    if cluster is None or cluster.simulated:
        return []
    down = {step.name for step in experiment.spec.method if step.bound.action.takes_down}
    return sorted({step.node for step in plan.steps if step.step in down})


def always_confirm(plan: Plan, cluster: ClusterInfo, nodes: list[str]) -> None:
    """Confirm every plan."""


def refuse_unconfirmed(plan: Plan, cluster: ClusterInfo, nodes: list[str]) -> None:  # noqa: ARG001 - a Confirm
    """Refuse plans that take machines down, for callers who cannot ask a person. Raises Refused."""
    if nodes:
        raise Refused(f"not confirmed: the run takes down {', '.join(nodes)}", hint="pass agree=True to confirm")
