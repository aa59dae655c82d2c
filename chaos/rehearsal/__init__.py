"""Runs in the process of a simulated cluster, and what many of them forecast.

Here is what ``chaos.api`` has of them. Imports are deferred until a function is called.
"""

# ruff: noqa: PLC0415 - slow imports are deferred until they are needed
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from chaos.core.inventory import Inventory
    from chaos.engine.load import LoadedExperiment
    from chaos.rehearsal.forecast.document import Rehearsal
    from chaos.reports.comparison.comparison import Comparison


def rehearse(
    experiment: LoadedExperiment | Path | str,
    snapshot: Path | str,
    *,
    seeds: Sequence[int] = range(1, 21),
    what_if: Sequence[str] = (),
    each: Literal["node", "zone"] | None = None,
    inventory: Inventory | Path | str | None = None,
    jobs: int | None = None,
) -> Rehearsal:
    """Run an experiment on copies of the cluster of ``snapshot``, once for each seed, in forked processes.

    ``what_if``: changes of the copy, as ``grace=shop/web:5``; ``without`` of the result then has the same runs before
    them. ``each``: every worker or zone is the victim in turn. ``inventory``: whose limits and protected nodes apply.
    ``jobs``: processes at a time, by default one for each core. Raises BadInput, UsageError, and Refused for what no
    copy can do.
    """
    from chaos.documents.inventory import as_inventory
    from chaos.engine.load import load
    from chaos.rehearsal.rehearsal import rehearse_snapshot

    loaded = load(Path(experiment)) if isinstance(experiment, Path | str) else experiment
    settings = as_inventory(inventory) if inventory is not None else None
    changes, paths = tuple(what_if), (loaded, Path(snapshot))
    return rehearse_snapshot(*paths, tuple(seeds), changes, each or "", settings, jobs)


def compare(
    *runs: Path | str,
    snapshot: Path | str | None = None,
    other: Path | str | None = None,
    prediction: Path | str | None = None,
    seeds: Sequence[int] = range(1, 21),
    reports: Path | str = "reports",
    other_victims: bool = False,
    jobs: int | None = None,
) -> list[Comparison]:
    """Compare a run or recording with rehearsals of ``snapshot``, the run ``other``, or a stored ``prediction``.

    Without these, a single one with what the lab predicts from its own first lists, and of several each with those
    before it. Raises BadInput, UsageError, and NotComparableError for another experiment or other victims.
    """
    from chaos.rehearsal.comparisons import CompareOptions, compare_all

    paths = [None if path is None else Path(path) for path in (snapshot, prediction)]
    names = tuple(str(run) for run in runs)
    return compare_all(
        CompareOptions(names, Path(reports), paths[0], str(other or ""), paths[1], tuple(seeds), jobs, other_victims)
    )
