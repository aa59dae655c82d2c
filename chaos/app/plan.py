"""Makes a plan from an experiment and an open cluster."""

from __future__ import annotations

import secrets
from pathlib import Path

from msgspec.structs import replace

from chaos.app.connect import ClusterConnection
from chaos.app.load import LoadedExperiment, required_permissions
from chaos.app.local_identity import own_node
from chaos.app.observer_setup import source_checks
from chaos.app.pending_undo import with_pending_undo
from chaos.app.preflight_data import CHECKS, PreflightCase, collect
from chaos.cluster.cluster_state import cluster_view, refuse_missing
from chaos.core.cluster_view import ClusterView
from chaos.core.plan import Plan
from chaos.core.registry import PluginRegistry
from chaos.engine.planning.planner import make_plan
from chaos.engine.planning.targets import planned_targets, select_nodes
from chaos.engine.planning.workload_nodes import select_workload_nodes
from chaos.engine.preflight.findings import describe, refuse, run_checks, warnings


def new_run_id(loaded: LoadedExperiment) -> str:
    """A unique run ID."""
    return f"{loaded.experiment.metadata.name}-{secrets.token_hex(3)}"


def plan(
    loaded: LoadedExperiment,
    connection: ClusterConnection,
    registry: PluginRegistry,
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
    needed = required_permissions(loaded, registry, connection.inventory)
    refuse_missing(connection.kube, needed, connection.clock.threads)
    seed = secrets.randbits(32) if seed is None else seed
    for check in source_checks(loaded.experiment, registry, connection).values():
        check()
    view = cluster_view(connection.kube, connection.uid)
    targets = planned_targets(loaded.experiment, registry)
    nodes = select_nodes(targets, view, connection.inventory, seed, own_node(view))
    case = PreflightCase(loaded, nodes, run=run, seed=seed)
    data = collect([case], connection, registry, view, same_run=True)
    findings = run_checks(CHECKS, with_pending_undo(data.observations, connection, reports))
    overridden = refuse(findings, anyway=anyway)
    planned = make_plan(loaded.experiment, registry, data.drafts[case.name])
    messages = tuple(describe(finding) for finding in warnings(findings))
    confined = select_workload_nodes(targets, nodes, view, connection.inventory, seed)
    cluster = connection.inventory.cluster
    slack = cluster.slack if cluster else 1.0
    return replace(planned, overridden=overridden, warnings=messages, workload_nodes=confined, slack=slack), view
