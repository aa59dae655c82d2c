"""From an experiment and an open cluster to a plan."""

from __future__ import annotations

import secrets

from msgspec.structs import replace

from chaos.doctor.findings import examine, refuse, told, warnings
from chaos.engine.gather import cluster_view
from chaos.engine.permissions import refuse_missing
from chaos.model.catalogue import Catalogue
from chaos.model.plan import Plan
from chaos.plan.cluster import ClusterView
from chaos.plan.planner import make_plan
from chaos.plan.targets import choose
from chaos.session.diagnosing import CHECKS, Case, look
from chaos.session.eyes import askings
from chaos.session.loading import Loaded, rights_of
from chaos.session.opening import Opened


def new_run(loaded: Loaded) -> str:
    """An ID that no other run has."""
    return f"{loaded.experiment.metadata.name}-{secrets.token_hex(3)}"


def plan(
    loaded: Loaded, opened: Opened, catalogue: Catalogue, seed: int | None, run: str, *, anyway: bool = False
) -> tuple[Plan, ClusterView]:
    """Choose targets, gather facts, refuse what must not be; ``anyway``: only what is final. Touches nothing."""
    refuse_missing(opened.kube, rights_of(loaded, catalogue, opened.inventory.cluster))
    seed = secrets.randbits(32) if seed is None else seed
    spec = loaded.experiment.spec
    for ask in askings(loaded.experiment, catalogue, opened).values():
        ask()
    view = cluster_view(opened.kube, opened.uid)
    chosen = choose(spec.targets, view, opened.inventory, seed)
    case = Case(loaded, chosen, run=run, seed=seed)
    looked = look([case], opened, catalogue, view, chosen=True)
    found = examine(CHECKS, looked.signs)
    overruled = refuse(found, anyway=anyway)
    made = make_plan(loaded.experiment, catalogue, looked.drafts[case.name])
    return replace(made, overruled=overruled, warnings=tuple(told(finding) for finding in warnings(found))), view
