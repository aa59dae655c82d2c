"""All weaknesses of a snapshot: the table of what is looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from chaos.rehearsal.suggest.model import Model
from chaos.rehearsal.suggest.of_budgets import autoscalers, budgets, missing_budgets
from chaos.rehearsal.suggest.of_nodes import daemons, interfering, shutdowns
from chaos.rehearsal.suggest.of_workloads import replicas, services, stateful, tolerations, volumes
from chaos.rehearsal.suggest.room import no_room
from chaos.rehearsal.suggest.weakness import Weakness, WeaknessKind

Find = Callable[[Model], Iterator[Weakness]]
FINDERS: Sequence[Find] = (
    replicas, services, stateful, volumes, no_room, tolerations, budgets, missing_budgets, autoscalers, shutdowns,
    daemons, interfering,
)  # fmt: skip
_ORDER = {kind: index for index, kind in enumerate(WeaknessKind)}


def weaknesses_of(model: Model) -> tuple[Weakness, ...]:
    """Every weakness, by kind, then by subject."""
    found = {(each.kind, each.sentence): each for find in FINDERS for each in find(model)}
    return tuple(sorted(found.values(), key=lambda each: (_ORDER[each.kind], each.subject, each.sentence)))
