"""Requirements of experiments on kubelets."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.judge.facts import kubelet_fact
from chaos.model.duration import format_duration
from chaos.model.requirement import satisfies
from chaos.preflight.check import Check, Diagnosis, experiment_refusal, ok
from chaos.preflight.observations import ClusterObservations, ExperimentNeeds, HostObservations


class KubeletRequirements(Check):
    """``requires: {kubelet: {shutdownGracePeriod: ">0"}}`` against the effective configuration."""

    name = "kubelet-requirements"
    summary = "the kubelets meet the requirements of the experiment"
    facts = ("configz",)
    is_compatibility_check = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        found = [
            experiment_refusal(experiment, *why, host=name, unmet=known)
            for experiment in observations.experiments
            for name in experiment.nodes
            if name in observations.hosts and not observations.hosts[name].error
            for why, known in unmet_requirements(experiment, observations.hosts[name])
        ]
        yield from found
        if not found and any(experiment.requires for experiment in observations.experiments):
            yield ok("the requirements are met")


def unmet_requirements(experiment: ExperimentNeeds, host: HostObservations) -> Iterator[tuple[tuple[str, str], bool]]:
    """Message and hint of each requirement that is not met, and whether the actual value is known."""
    config = host.fact("configz") or {}
    for source, wanted in experiment.requires.items():
        for name, text in wanted.items():
            value = kubelet_fact(config, f"{source}.{name}")
            if value is None:
                message = f"the experiment requires {source}.{name} {text}, but the value on {host.node} is unknown"
                yield (message, f"make sure that the {source}'s configuration can be read"), False
            elif not satisfies(value, text):
                message = (
                    f"the experiment requires {source}.{name} {text}; on {host.node} it is {format_duration(value)}"
                )
                yield (message, f"change {name} in the {source}'s configuration, or choose another node"), True


CHECK = KubeletRequirements()
