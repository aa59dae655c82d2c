"""Experiments on simulated clusters, each compared with what rehearsals of the same cluster predict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from chaos.app.load import load
from chaos.app.registry import load_registry
from chaos.lab.cluster import Cluster
from chaos.lab.facade import DirectLab, LabSpec
from chaos.rehearsal.copies import LabCopy, Source, lab_source, snapshot_source
from chaos.rehearsal.forecast.sample import Sample
from chaos.rehearsal.many import Rehearsals
from chaos.verdicts.outcome.acceptance import SIMULATED_RESOLUTION, Row, Terms, compare_outcome
from chaos.verdicts.outcome.prediction import bands
from tests.kit.lab_copies import save
from tests.kit.processes import EXPERIMENTS
from tests.kit.rehearsals import settings_of


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
    registry = load_registry()
    loaded = load(EXPERIMENTS / f"{name}.yaml", registry)
    return Rehearsals(loaded, registry, source, 1, settings_of(name)).over_seeds(seeds, targets)


def _broken(copy: LabCopy, breakages: Sequence[str]) -> LabCopy:
    return replace(copy, spec=msgspec.structs.replace(copy.spec, breakages=list(breakages)))
