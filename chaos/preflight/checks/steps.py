"""Whether each step can be done, and taken back."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, experiment_refusal, ok
from chaos.preflight.observations import ClusterObservations


class Steps(Check):
    """As the actions themselves say, from what is known of the host."""

    name = "steps"
    summary = "each step of the experiment can be done on the node, and taken back"
    is_final = True
    is_compatibility_check = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        found = [
            experiment_refusal(use, *why, host=node)
            for use in signs.experiments
            for node in ("", *use.nodes)
            if not node or (node in signs.hosts and not signs.hosts[node].error)
            if (why := use.step_error(node))
        ]
        yield from found
        if not found and signs.experiments:
            yield ok("they can be done, and taken back")


CHECK = Steps()
