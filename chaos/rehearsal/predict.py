"""The prediction that the runs of a rehearsal make together, as ``nodefall compare`` reads it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from chaos.app.load import LoadedExperiment
from chaos.core.errors import Exit
from chaos.rehearsal.copies import Source
from chaos.rehearsal.forecast.limits import limits_of
from chaos.rehearsal.forecast.sample import Sample
from chaos.rehearsal.forecast.summary import expectation_bands, risk_sentences
from chaos.verdicts.outcome.prediction import Prediction, bands


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
