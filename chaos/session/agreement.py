"""Who is asked before machines of a real cluster go down."""

from __future__ import annotations

from collections.abc import Callable

from chaos.model.catalogue import Catalogue
from chaos.model.errors import Refused
from chaos.model.plan import Plan
from chaos.session.opening import Opened

Agree = Callable[[Plan, Opened, list[str]], None]
"""Is shown the plan, the cluster and :func:`going_down` of them. Raises Refused where it is not to be done."""


def going_down(plan: Plan, opened: Opened, catalogue: Catalogue) -> list[str]:
    """The machines that the plan takes down; none of a simulated cluster."""
    cluster = opened.inventory.cluster
    if cluster is None or cluster.simulated:
        return []
    return sorted({step.node for step in plan.steps if catalogue.actions[step.action].takes_down})


def agreed_before(plan: Plan, opened: Opened, down: list[str]) -> None:
    """It was said when it was asked for."""


def nobody_agrees(plan: Plan, opened: Opened, down: list[str]) -> None:  # noqa: ARG001 - as Agree
    """Raises Refused where a machine goes down: there is nobody to ask."""
    if down:
        who = ", ".join(down)
        raise Refused(f"{who} would go down, and nobody has agreed to that", hint="agree=True says that it is meant")
