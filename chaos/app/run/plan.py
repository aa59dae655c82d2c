"""Makes a plan from an experiment and an open cluster; who runs it may have to confirm it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from chaos.app.undo.pending import with_pending_undo
from chaos.cluster.cluster_state import cluster_view, refuse_missing
from chaos.core.cluster_view import ClusterView
from chaos.core.errors import Refused
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan
from chaos.engine.connection import ClusterConnection
from chaos.engine.load import LoadedExperiment, required_permissions
from chaos.engine.local_identity import own_node
from chaos.engine.observers import source_checks
from chaos.engine.planning.planner import make_plan
from chaos.engine.planning.targets import planned_targets, select_nodes, select_workload_nodes
from chaos.engine.preflight.collect import CHECKS, PreflightCase, collect
from chaos.engine.preflight.findings import describe, refuse, run_checks, warnings


def new_run_id(loaded: LoadedExperiment) -> str:
    """A unique run ID."""
    return f"{loaded.experiment.metadata.name}-{secrets.token_hex(3)}"


def plan(
    loaded: LoadedExperiment,
    connection: ClusterConnection,
    seed: int | None,
    run: str,
    *,
    reports: Path,
    anyway: bool = False,
) -> tuple[Plan, ClusterView]:
    """Select targets, collect facts, run preflight checks and plan every step. No side effects but helper pods.

    ``reports``: runs below it may have a pending undo. ``anyway`` overrides refusals that are not final. Raises
    NodefallError.
    """
    loaded.registry.bind(loaded.experiment)
    needed = required_permissions(loaded, connection.inventory)
    refuse_missing(connection.kube, needed, connection.clock.threads)
    seed = secrets.randbits(32) if seed is None else seed
    for check in source_checks(loaded.experiment, connection).values():
        check()
    view = cluster_view(connection.kube, connection.uid)
    targets = planned_targets(loaded.experiment)
    nodes = select_nodes(targets, view, connection.inventory, seed, own_node(view))
    case = PreflightCase(loaded, nodes, run=run, seed=seed)
    data = collect([case], connection, view, same_run=True)
    findings = run_checks(CHECKS, with_pending_undo(data.observations, connection, reports))
    overridden = refuse(findings, anyway=anyway)
    planned = make_plan(loaded.experiment, data.drafts[case.name])
    messages = tuple(describe(finding) for finding in warnings(findings))
    confined = select_workload_nodes(targets, nodes, view, connection.inventory, seed)
    cluster = connection.inventory.cluster
    slack = cluster.slack if cluster else 1.0
    return replace(planned, overridden=overridden, warnings=messages, workload_nodes=confined, slack=slack), view


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The cluster of a plan. ``server``: the URL of its API server; ``version``: that of Kubernetes."""

    inventory: Inventory
    server: str
    uid: str
    version: str


Confirm = Callable[[Plan, ClusterInfo, list[str]], None]
"""Called with a plan, its cluster and the real machines that would go down. Raises Refused to cancel the run."""


def nodes_taken_down(plan: Plan, connection: ClusterConnection, loaded: LoadedExperiment) -> list[str]:
    """Names of the real machines that the plan takes down; none in a simulated cluster."""
    cluster = connection.inventory.cluster
    if cluster is None or cluster.simulated:
        return []
    down = {step.name for step in loaded.experiment.spec.method if step.bound.action.takes_down}
    return sorted({step.node for step in plan.steps if step.step in down})


def always_confirm(plan: Plan, cluster: ClusterInfo, nodes: list[str]) -> None:
    """Confirm every plan."""


def refuse_unconfirmed(plan: Plan, cluster: ClusterInfo, nodes: list[str]) -> None:  # noqa: ARG001 - a Confirm
    """Refuse plans that take machines down, for callers who cannot ask a person. Raises Refused."""
    if nodes:
        raise Refused(f"not confirmed: the run takes down {', '.join(nodes)}", hint="pass agree=True to confirm")
