"""Property: the copy of a lab has the same snapshot as the lab, but for identities and times."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec
from tests.kit.lab_copies import comparable, copy_of, differences, save
from tests.kit.random_clusters import Operation, do, labs, set_up, workloads
from tests.kit.simkit import Object

SETTLED = 1000.0  # seconds: evictions after 300 s, detaches after 360 s more, roll-outs
CALM_FOR = 60.0  # seconds without a change of a pod
CALM = ("cordon", "taint", "scale", "roll", "make-claim", "delete-pod", "delete-claim", "delete-budget", "update-pod")
OPERATIONS = st.builds(
    Operation,
    kind=st.sampled_from([*CALM, "power"]),
    who=st.integers(0, 9),
    what=st.integers(0, 2),
    wait=st.sampled_from([0.0, 3.0, 60.0]),
)


@given(
    labs(),
    st.lists(workloads(), max_size=4),
    st.lists(st.integers(0, 3), max_size=3),
    st.lists(OPERATIONS, max_size=5),
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_copy_has_the_same_snapshot(
    spec: LabSpec, made: list[tuple[str, Object]], budgets: list[int], operations: list[Operation]
) -> None:
    cluster = Cluster(spec)
    cluster.start()
    cluster.sim.run_until(cluster.sim.now + 5)
    set_up(cluster, made, budgets)
    cluster.sim.run_until(cluster.sim.now + 30)
    for operation in operations:
        do(cluster, operation)
        cluster.sim.run_until(cluster.sim.now + operation.wait)
    cluster.sim.run_until(cluster.sim.now + SETTLED)
    before = _versions(cluster)
    cluster.sim.run_until(cluster.sim.now + CALM_FOR)
    assume(_versions(cluster) == before)  # pods that tolerate a taint for seconds are evicted again and again
    with tempfile.TemporaryDirectory() as folder:
        first = save(cluster, Path(folder, "first.gz"))
        copy, _ = copy_of(first, seed=spec.seed + 1)
        second = save(copy, Path(folder, "second.gz"))
        assert differences(comparable(first), comparable(second)) == []


def _versions(cluster: Cluster) -> dict[str, str]:
    return {pod["metadata"]["uid"]: pod["metadata"]["resourceVersion"] for pod in cluster.store.list("pods")}
