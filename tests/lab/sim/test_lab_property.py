"""Random clusters, faults and API calls never violate the invariants of facts 16, and a seed reproduces them."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec
from tests.kit.invariants import Checker
from tests.kit.random_clusters import Operation, do, labs, operations, set_up, workloads
from tests.kit.simkit import History, Object, run

_MANY = int(os.environ.get("NODEFALL_EXAMPLES", "0"))
_PROFILE = settings(
    max_examples=_MANY or 30,
    derandomize=not _MANY,  # the same examples in every run, others in the nightly run
    deadline=None,
    phases=[phase for phase in Phase if phase != Phase.explain],  # its line tracing is slow
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
_WORLD = (labs(), st.lists(workloads(), min_size=1, max_size=5), st.lists(st.integers(0, 3), max_size=3), operations())


def _play(
    lab: LabSpec, made: list[tuple[str, Object]], budgets: list[int], done: list[Operation], *, checked: bool
) -> tuple[Checker | None, History]:
    cluster, history = Cluster(lab), History()
    checker = Checker(cluster) if checked else None
    cluster.store.subscribe(lambda change: history.changes.append((cluster.sim.now, change)))
    cluster.start()
    run(cluster, 3.0)
    set_up(cluster, made, budgets)
    run(cluster, 20.0)
    for operation in done:
        if checker is not None:
            checker.world.touched = cluster.sim.now
        do(cluster, operation)
        run(cluster, operation.wait)
    run(cluster, 100.0)
    return checker, history


@_PROFILE
@given(*_WORLD)
def test_invariants_hold(
    lab: LabSpec, made: list[tuple[str, Object]], budgets: list[int], done: list[Operation]
) -> None:
    checker, _ = _play(lab, made, budgets, done, checked=True)
    assert checker is not None
    assert checker.violations == []


@settings(_PROFILE, max_examples=max(4, _MANY // 10))
@given(*_WORLD)
def test_same_seed_same_history(
    lab: LabSpec, made: list[tuple[str, Object]], budgets: list[int], done: list[Operation]
) -> None:
    """Byte for byte, and the checker only reads."""
    assert (
        _play(lab, made, budgets, done, checked=True)[1].lines()
        == _play(lab, made, budgets, done, checked=False)[1].lines()
    )
