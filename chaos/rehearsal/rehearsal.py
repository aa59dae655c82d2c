"""``nodefall rehearse``: all runs, with and without changes, and what they show together."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.core.errors import Exit, Refused
from chaos.core.inventory import Inventory
from chaos.core.labels import ZONE_LABEL
from chaos.engine.load import LoadedExperiment
from chaos.rehearsal.copies import Source, parse_changes, snapshot_source
from chaos.rehearsal.forecast.document import Rehearsal, Victims, exit_code_of, headline, limits, summarize
from chaos.rehearsal.forecast.ranking import expectation_bands, risk_sentences
from chaos.rehearsal.forecast.sample import Sample, limits_of
from chaos.rehearsal.many import Rehearsals
from chaos.verdicts.outcome.prediction import Prediction, bands


@dataclass(frozen=True, slots=True)
class Request:
    """``without``: the source before changes, None if there are none. ``each``: node or zone, "" for seeds only."""

    rehearsals: Rehearsals
    seeds: tuple[int, ...]
    without: Source | None = None
    each: str = ""

    @property
    def total(self) -> int:
        """Number of runs."""
        sources = [self.rehearsals.source, *([self.without] if self.without else [])]
        return len(self.seeds) * sum(len(victims_of(source, self.each).nodes) or 1 for source in sources)


def rehearse(request: Request) -> tuple[Rehearsal, Prediction | None]:
    """Run everything; the prediction is None with victims. Raises NodefallError for what no run can do."""
    rehearsals, source = request.rehearsals, request.rehearsals.source
    victims = victims_of(source, request.each)
    samples = _samples(rehearsals, request.seeds, victims)
    runs, without = summarize(samples, source.changes, victims), None
    if request.without:
        others = victims_of(request.without, request.each)
        before = replace(rehearsals, source=request.without)
        without = summarize(_samples(before, request.seeds, others), (), others)
    loaded = rehearsals.loaded
    document = Rehearsal(
        experiment=loaded.experiment.metadata.name,
        title=loaded.experiment.spec.title,
        experiment_hash=hashlib.sha256(loaded.document).hexdigest(),
        snapshot=source.name,
        snapshot_hash=source.digest,
        kubernetes=source.kubernetes,
        seeds=request.seeds,
        each=request.each,
        exit_code=exit_code_of(samples),
        headline=headline(runs, request.each),
        runs=runs,
        without=without,
        limits=limits(source.missing, samples),
    )
    return document, None if request.each else predict(loaded, source, samples)


def rehearse_snapshot(
    loaded: LoadedExperiment,
    snapshot: Path,
    seeds: tuple[int, ...],
    what_if: Sequence[str],
    each: str,
    settings: Inventory | None,
    jobs: int | None,
) -> Rehearsal:
    """As ``chaos.api.rehearse``, which see."""
    changes = parse_changes(what_if)
    source = snapshot_source(snapshot, changes)
    without = snapshot_source(snapshot) if changes else None
    rehearsals = Rehearsals(loaded, source, jobs or cores(), settings)
    return rehearse(Request(rehearsals, seeds, without, each))[0]


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def victims_of(source: Source, each: str) -> Victims:
    """Every worker, or every zone with its workers; none without ``each``. Raises Refused without a zone."""
    workers = [node for node in source.make().spec.nodes if node.role == "worker"]
    if each == "node":
        return Victims({node.name: (node.name,) for node in workers}, {node.name: node.zone for node in workers})
    if each != "zone":
        return Victims()
    zones = sorted({node.zone for node in workers} - {""})
    if not zones:
        raise Refused("no node has a zone", hint=f"use --each-node, or label the nodes with {ZONE_LABEL}")
    return Victims({zone: tuple(node.name for node in workers if node.zone == zone) for zone in zones})


def _samples(rehearsals: Rehearsals, seeds: Sequence[int], victims: Victims) -> list[Sample]:
    if not victims.nodes:
        return rehearsals.over_seeds(seeds)
    return [sample for seed in seeds for sample in rehearsals.over_victims(victims.nodes, seed)]


def predict(loaded: LoadedExperiment, source: Source, samples: Sequence[Sample]) -> Prediction:
    """Bands over the samples of one experiment on one source."""
    outcomes = [sample.outcome for sample in samples if sample.outcome]
    targets = [sample.result.targets for sample in samples if sample.result]
    codes = Counter(int(sample.result.exit_code if sample.result else Exit.REFUSED) for sample in samples)
    return Prediction(
        experiment=loaded.experiment.metadata.name,
        experiment_hash=hashlib.sha256(loaded.document).hexdigest(),
        snapshot_hash=source.digest,
        seeds=tuple(sample.seed for sample in samples),
        horizon=round(min((outcome.observed for outcome in outcomes), default=0.0), 3),
        measures=tuple(bands(outcomes).values()),
        expectations=expectation_bands(samples),
        targets=targets[0] if targets and all(each == targets[0] for each in targets) else {},
        exit_codes={str(code): count for code, count in sorted(codes.items())},
        findings=tuple(risk_sentences(samples)),
        not_modelled=tuple(limits_of(source.missing, samples)),
        what_if=source.changes,
        kubernetes=source.kubernetes,
    )
