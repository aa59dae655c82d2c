"""What experiments require of kubelets."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.judge.facts import kubelet_fact
from chaos.model.duration import format_duration
from chaos.model.requirement import satisfies
from chaos.preflight.check import Check, Diagnosis, experiment_refusal, ok
from chaos.preflight.observations import ClusterObservations, ExperimentNeeds, HostObservations


class KubeletRequirements(Check):
    """``requires: {kubelet: {shutdownGracePeriod: ">0"}}`` against the configuration that is in force."""

    name = "requires"
    summary = "the kubelets have what the experiment requires"
    facts = ("configz",)
    is_compatibility_check = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        found = [
            experiment_refusal(use, *why, host=name, unmet=known)
            for use in signs.experiments
            for name in use.nodes
            if name in signs.hosts and not signs.hosts[name].error
            for why, known in unmet_requirements(use, signs.hosts[name])
        ]
        yield from found
        if not found and any(use.requires for use in signs.experiments):
            yield ok("what is required is there")


def unmet_requirements(use: ExperimentNeeds, host: HostObservations) -> Iterator[tuple[tuple[str, str], bool]]:
    """What is required and how to mend it, and whether it is known what there is instead."""
    config = host.fact("configz") or {}
    for source, wanted in use.requires.items():
        for name, text in wanted.items():
            value = kubelet_fact(config, f"{source}.{name}")
            if value is None:
                told = f"the experiment requires {source}.{name} {text}, which {host.node} does not tell"
                yield (told, f"see whether the {source}'s configuration can be read"), False
            elif not satisfies(value, text):
                told = f"the experiment requires {source}.{name} {text}; on {host.node} it is {format_duration(value)}"
                yield (told, f"change {name} in the {source}'s configuration, or choose another node"), True


CHECK = KubeletRequirements()
