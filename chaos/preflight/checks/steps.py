"""Whether each step can run, and be undone."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, experiment_refusal, ok
from chaos.preflight.observations import ClusterObservations


class Steps(Check):
    """Prepares each action with the facts of the host."""

    name = "steps"
    summary = "each step of the experiment can run on the node, and be undone"
    is_final = True
    is_compatibility_check = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        failures = [
            (experiment, node, why)
            for experiment in observations.experiments
            for node in ("", *experiment.nodes)
            if not node or (node in observations.hosts and not observations.hosts[node].error)
            if (why := experiment.step_error(node))
        ]
        for experiment, node, why in failures:
            if not (node and why[0] == observations.hosts[node].target.power_error):  # the check power-recovery has it
                yield experiment_refusal(experiment, *why, host=node)
        if not failures and observations.experiments:
            yield ok("they can run, and be undone")


CHECK = Steps()
