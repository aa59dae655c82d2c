"""From an experiment and an open cluster to a plan."""

from __future__ import annotations

import secrets

from msgspec.structs import replace

from chaos.app.connect import ClusterConnection
from chaos.app.load import LoadedExperiment, required_permissions
from chaos.app.observer_setup import source_checks
from chaos.app.preflight_data import CHECKS, PreflightCase, collect
from chaos.kube.cluster_snapshot import cluster_view
from chaos.kube.permissions import refuse_missing
from chaos.model.plan import Plan
from chaos.model.registry import PluginRegistry
from chaos.plan.cluster import ClusterView
from chaos.plan.planner import make_plan
from chaos.plan.targets import select_nodes
from chaos.preflight.findings import describe, refuse, run_checks, warnings


def new_run_id(loaded: LoadedExperiment) -> str:
    """An ID that no other run has."""
    return f"{loaded.experiment.metadata.name}-{secrets.token_hex(3)}"


def plan(
    loaded: LoadedExperiment,
    opened: ClusterConnection,
    catalogue: PluginRegistry,
    seed: int | None,
    run: str,
    *,
    anyway: bool = False,
) -> tuple[Plan, ClusterView]:
    """Choose targets, gather facts, refuse what must not be; ``anyway``: only what is final. Touches nothing."""
    refuse_missing(opened.kube, required_permissions(loaded, catalogue, opened.inventory.cluster))
    seed = secrets.randbits(32) if seed is None else seed
    spec = loaded.experiment.spec
    for ask in source_checks(loaded.experiment, catalogue, opened).values():
        ask()
    view = cluster_view(opened.kube, opened.uid)
    chosen = select_nodes(spec.targets, view, opened.inventory, seed)
    case = PreflightCase(loaded, chosen, run=run, seed=seed)
    looked = collect([case], opened, catalogue, view, same_run=True)
    found = run_checks(CHECKS, looked.observations)
    overruled = refuse(found, anyway=anyway)
    made = make_plan(loaded.experiment, catalogue, looked.drafts[case.name])
    return replace(made, overridden=overruled, warnings=tuple(describe(finding) for finding in warnings(found))), view
