"""Whether an experiment's targets can be chosen at all."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, experiment_refusal, ok
from chaos.preflight.observations import ClusterObservations


class Targets(Check):
    """Enough nodes that fit, are Ready and not protected, within the inventory's limits."""

    name = "targets"
    summary = "the experiment's targets can be chosen within the limits of the inventory"
    is_final = True
    is_compatibility_check = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        unfit = [use for use in signs.experiments if use.target_error]
        for use in unfit:
            says, mend = use.target_error or ("", "")
            yield experiment_refusal(use, f"{use.name}: {says}", mend)
        if signs.experiments and not unfit:
            yield ok("they can be chosen")


CHECK = Targets()
