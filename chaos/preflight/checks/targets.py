"""Whether an experiment's targets can be selected."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, experiment_refusal, ok
from chaos.preflight.observations import ClusterObservations


class Targets(Check):
    """Enough nodes must match, be Ready and unprotected, within the inventory's limits."""

    name = "targets"
    summary = "the experiment's targets can be selected within the limits of the inventory"
    is_final = True
    is_compatibility_check = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        failing = [each for each in observations.experiments if each.target_error]
        for experiment in failing:
            message, hint = experiment.target_error or ("", "")
            yield experiment_refusal(experiment, f"{experiment.name}: {message}", hint)
        if observations.experiments and not failing:
            yield ok("they can be selected")


CHECK = Targets()
