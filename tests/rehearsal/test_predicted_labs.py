"""Predicted and then run: on the same lab with another seed, on a copy from its snapshot, and on one that does wrong.

All shipped experiments only with NODEFALL_EXPERIMENTS=all (``.ci/nightly``).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from chaos.app.lab_spec import lab_spec
from chaos.core.store.recording import build_timeline, read_recording
from chaos.engine.load import load
from chaos.lab.cluster import Cluster
from chaos.lab.facade import DirectLab
from chaos.lab.spec import LabSpec, NodeSpec
from chaos.rehearsal.copies import LabCopy, Source, expected_of_recording, lab_source, snapshot_source
from chaos.rehearsal.forecast.sample import Sample
from chaos.rehearsal.many import Rehearsals
from chaos.reports.comparison.comparison import Comparison, compare
from chaos.reports.comparison.side import side_of
from chaos.verdicts.outcome.acceptance import SIMULATED_RESOLUTION, Row, Standing, Terms, compare_outcome
from chaos.verdicts.outcome.prediction import bands
from tests.kit.experiment_runs import BUNDLED, part
from tests.kit.lab_copies import save
from tests.kit.processes import EXPERIMENTS, ROOT
from tests.kit.random_clusters import set_up
from tests.kit.rehearsals import START, settings_of
from tests.kit.simkit import workload
from tests.kit.suite import others_nightly


class NothingHappenedError(Exception):
    """No measure of that experiment came true, or its run was refused, so there is nothing to predict."""


_LATE_RETURN = ("partition", "kubelet-freeze")
OTHER_SEED = 101


def surprises(name: str, breakages: Sequence[str] = (), seeds: int = 20) -> list[Row]:
    """What a run on the experiment's lab with ``breakages`` has outside of the bands of that lab without them."""
    lab = settings_of(name).lab
    assert lab is not None
    source = lab_source(lab, name)
    return _surprises(name, replace(source, make=lambda: _broken(source.make(), breakages)), lambda: source, seeds)


def surprises_of_copy(
    name: str, spec: LabSpec, populate: Callable[[Cluster], None], folder: Path, seeds: int = 20
) -> list[Row]:
    """The same of a populated lab, beside copies of it from a snapshot that was taken before the run."""
    path = folder / "lab.snapshot.gz"

    def start(lab: DirectLab) -> None:
        lab.start(populate)
        save(lab.cluster, path)

    real = Source("lab", "", spec.kubernetes, lambda: LabCopy(spec, start, tuple))
    return _surprises(name, real, lambda: snapshot_source(path), seeds)


def _surprises(name: str, real: Source, predicted: Callable[[], Source], seeds: int) -> list[Row]:
    happened = _run(name, real, [OTHER_SEED], {})[0]
    if happened.outcome is None:
        raise NothingHappenedError(f"{name}: {happened.refused or 'no step was sent'}")
    assert happened.result is not None
    if not happened.outcome.seconds:
        raise NothingHappenedError(f"{name}: nothing changed")
    samples = _run(name, predicted(), range(1, seeds + 1), happened.result.targets)
    outcomes = [sample.outcome for sample in samples if sample.outcome]
    assert len(outcomes) == seeds, {sample.refused for sample in samples}
    horizon = min(outcome.observed for outcome in outcomes)
    late = any(step.action in _LATE_RETURN for step in happened.result.steps)
    rows = compare_outcome(happened.outcome, bands(outcomes), Terms(horizon, SIMULATED_RESOLUTION, late))
    return [row for row in rows if row.standing.is_outside]


def _run(name: str, source: Source, seeds: Sequence[int], targets: dict[str, tuple[str, ...]]) -> list[Sample]:
    loaded = load(EXPERIMENTS / f"{name}.yaml")
    return Rehearsals(loaded, source, 1, settings_of(name)).over_seeds(seeds, targets)


def _broken(copy: LabCopy, breakages: Sequence[str]) -> LabCopy:
    return replace(copy, spec=msgspec.structs.replace(copy.spec, breakages=list(breakages)))


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


RECORDINGS = sorted((ROOT / "tests" / "recordings").glob("*.jsonl.gz"))
MEASURES = {
    "01-graceful-poweroff": 84,
    "02-cancelled-shutdown-signal": 106,
    "05-power-cut": 107,
    "07-partition-from-control-plane": 42,
    "08-drain-blocked-then-allowed": 86,
    "10-priority-shutdown": 54,
    "12-partition-ipv4-only": 0,  # the kubelet comes back over IPv6 in time: nothing happens, as is predicted
    "16-graceful-poweroff-exit-codes": 101,
    "25-two-nodes-of-a-zone": 52,
    "27-poweroff-cancelled-in-flight-systemd-257": 160,
    "31-volume-force-deleted-pod": 24,
    "33-volume-graceful-poweroff": 36,
}
# What the volume controllers and a kubelet that is stopped leave to chance, and what came after the last entry.
NOT_JUDGED = {"27-poweroff-cancelled-in-flight-systemd-257": 3, "33-volume-graceful-poweroff": 10}


def _compared(path: Path, seeds: int = 20) -> Comparison:
    entries = list(read_recording(path))
    side = side_of(path.name, build_timeline(entries))
    return compare(side, expected_of_recording(side, entries, range(1, seeds + 1)))


@pytest.mark.parametrize(
    "path", others_nightly(RECORDINGS, RECORDINGS[::3]), ids=lambda path: path.name.removesuffix(".jsonl.gz")
)
def test_every_measure_lies_in_its_band(path: Path) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    comparison = _compared(path)
    assert [str(row) for row in comparison.outside] == []
    found = Counter(row.standing for row in comparison.rows)
    assert found[Standing.INSIDE] == MEASURES[name] == len(comparison.side.outcome.seconds)
    assert sum(found.values()) - found[Standing.INSIDE] <= NOT_JUDGED.get(name, 0)


def test_every_recording_is_predicted() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in RECORDINGS} == MEASURES.keys()


@pytest.mark.parametrize("shift", [("controllerManager", {"nodeMonitorGracePeriod": "25s"}), ("systemd", 257)])
def test_another_cluster_would_have_been_noticed(shift: tuple[str, object]) -> None:
    """A prediction with another grace period, or a systemd that cancels shutdowns, leaves what happened outside."""
    name = "27-poweroff-cancelled-in-flight-systemd-257" if shift[0] == "systemd" else "05-power-cut"
    path = ROOT / "tests" / "recordings" / f"{name}.jsonl.gz"
    entries = list(read_recording(path))
    side = side_of(path.name, build_timeline(entries))
    meta = msgspec.json.decode(entries[0].object)
    other = {**meta, shift[0]: 252 if shift[0] == "systemd" else shift[1]}
    entries[0] = msgspec.structs.replace(entries[0], object=msgspec.Raw(msgspec.json.encode(other)))
    assert compare(side, expected_of_recording(side, entries, range(1, 11))).outside


def test_the_future_is_not_known() -> None:
    """Without what followed the last operation, but for the boot of the machine, the prediction is the same."""
    path = ROOT / "tests" / "recordings" / "08-drain-blocked-then-allowed.jsonl.gz"
    entries = list(read_recording(path))
    side = side_of(path.name, build_timeline(entries))
    last = max(entry.t for entry in entries if entry.kind == "action")
    known = [entry for entry in entries if entry.t <= last or entry.kind not in ("pods", "nodes", "leases", "events")]
    whole, cut = (expected_of_recording(side, each, [1, 2]).measures for each in (entries, known))
    assert whole == cut
