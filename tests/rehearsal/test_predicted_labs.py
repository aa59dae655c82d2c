"""Predicted and then run: on the same lab with another seed, on a copy from its snapshot, and on one that does wrong.

All shipped experiments only with NODEFALL_EXPERIMENTS=all (``.ci/nightly``).
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from chaos.app.lab_spec import lab_spec
from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, NodeSpec
from tests.kit.experiment_runs import BUNDLED, part
from tests.kit.predictions import NothingHappenedError, surprises, surprises_of_copy
from tests.kit.random_clusters import set_up
from tests.kit.rehearsals import START, settings_of
from tests.kit.simkit import workload
from tests.kit.suite import others_nightly

IS_WHOLE = os.environ.get("NODEFALL_EXPERIMENTS") == "all"
LINUX = [name for name, item in BUNDLED.items() if "windows" not in item.notes["lab"]]
TIMING = [  # experiments with a breakage that moves times or states, of mechanisms of each kind
    pytest.param("power-cut", "unknown-late", marks=pytest.mark.nightly),
    ("two-phases", "buckets-reordered"),
]


@pytest.mark.skipif(not IS_WHOLE, reason="takes minutes: NODEFALL_EXPERIMENTS=all")
@pytest.mark.parametrize("name", LINUX)
def test_a_run_with_another_seed_lies_in_the_bands(name: str) -> None:
    assert [str(row) for row in surprises(name)] == []


@pytest.mark.parametrize(("name", "breakage"), TIMING)
def test_a_lab_that_does_wrong_leaves_them(name: str, breakage: str) -> None:
    assert surprises(name, [breakage], seeds=5)


def _populate(cluster: Cluster) -> None:
    cluster.start()
    cluster.sim.run_until(cluster.sim.now + 5)
    made = [
        ("deployments", workload("web", grace=10, stops=4, replicas=6)),
        ("statefulsets", workload("db", replicas=3, podManagementPolicy="Parallel")),
        ("daemonsets", workload("agent")),
    ]
    set_up(cluster, made, [0])
    cluster.sim.run_until(cluster.sim.now + 60)


@pytest.mark.parametrize("name", others_nightly(["power-cut", "graceful-poweroff"], ("graceful-poweroff",)))
def test_a_copy_predicts_the_cluster_it_was_taken_of(tmp_path: Path, name: str) -> None:
    nodes = [NodeSpec(name="cp", role="control-plane"), *(NodeSpec(name=f"w{number}") for number in range(1, 5))]
    spec, seeds = LabSpec(nodes=nodes), 20 if IS_WHOLE else 8
    assert [str(row) for row in surprises_of_copy(name, spec, _populate, tmp_path, seeds)] == []


@pytest.mark.skipif(not IS_WHOLE, reason="takes minutes: NODEFALL_EXPERIMENTS=all")
@pytest.mark.parametrize("name", part(LINUX, 20))
def test_a_copy_of_an_experiments_lab_predicts_it(tmp_path: Path, name: str) -> None:
    """Populated, so that more than the experiment's own pods are concerned."""
    lab = settings_of(name).lab
    assert lab is not None
    spec = msgspec.convert(lab_spec(lab, 1, START), LabSpec)
    try:
        found = [str(row) for row in surprises_of_copy(name, spec, _populate, tmp_path)]
    except NothingHappenedError as error:
        pytest.skip(str(error))
    assert found == []


def test_a_copy_has_windows_nodes(tmp_path: Path) -> None:
    name = "windows-graceful-poweroff"
    lab = settings_of(name).lab
    assert lab is not None
    spec = msgspec.convert(lab_spec(lab, 1, START), LabSpec)
    assert [str(row) for row in surprises_of_copy(name, spec, Cluster.start, tmp_path, seeds=5)] == []
