"""Limits of the inventory on what may be down at once. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.core.cluster_view import ClusterView
from chaos.core.errors import Refused
from chaos.core.inventory import Limits


def check_ready_nodes(down: Iterable[str], view: ClusterView, limits: Limits) -> None:
    """Raises Refused if fewer Ready workers than ``limits.minReadyNodes``, or no Ready node, remain without ``down``.

    A control plane is no spare worker: few pods may run there. In a cluster without workers all nodes count.
    """
    down = set(down)
    has_workers = any(view.role(name) == "worker" for name in view.nodes)
    what = "workers" if has_workers else "nodes"
    remaining = len(set(view.ready_workers() if has_workers else view.ready_nodes()) - down)
    if remaining < limits.min_ready_nodes:
        raise Refused(
            f"too few Ready {what}: {remaining} would stay Ready, limits.minReadyNodes is {limits.min_ready_nodes}",
            hint="select fewer targets, or lower limits.minReadyNodes in the inventory",
        )
    if not set(view.ready_nodes()) - down:
        raise Refused("too few Ready nodes: none would stay Ready", hint="select fewer targets")
