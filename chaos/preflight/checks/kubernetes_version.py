"""Versions of Kubernetes for which experiments are true."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.kubernetes_version import in_range, parse_minor
from chaos.preflight.check import Check, Diagnosis, experiment_refusal, ok
from chaos.preflight.observations import ClusterObservations, ExperimentNeeds


class KubernetesVersion(Check):
    """``kubernetes: ">=v1.32"`` against the API server and the kubelets of the nodes that may become targets.

    Kubelets may be three minor versions older than the API server (kubernetes.io, "Version Skew Policy").
    """

    name = "kubernetes-version"
    summary = "the experiment is true for the versions of the API server and of the kubelets"
    is_compatibility_check = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        limited = [experiment for experiment in observations.experiments if experiment.kubernetes]
        found = [each for experiment in limited for each in _refusals(experiment, observations)]
        yield from found
        if limited and not found:
            yield ok("the experiments are true for the versions of the cluster")


def _refusals(experiment: ExperimentNeeds, observations: ClusterObservations) -> Iterator[Diagnosis]:
    nodes = observations.view.nodes
    known = [("", "the API server", observations.kubernetes)]
    for name in experiment.nodes:
        status = nodes[name].status if name in nodes else None
        info = status.node_info if status else None
        known.append((name, f"the kubelet of {name}", info.kubelet_version if info else ""))
    for host, component, text in known:
        version = parse_minor(text)
        if version is None:
            message = f"{experiment.name} is for Kubernetes {experiment.kubernetes}; the version of {component} is"
            yield experiment_refusal(experiment, f"{message} unknown ({text!r})", "", host)
        elif not in_range(version, experiment.kubernetes):
            message = f"{experiment.name} is for Kubernetes {experiment.kubernetes}; {component} is {text}"
            hint = "choose another node, or another experiment" if host else "choose another cluster or experiment"
            yield experiment_refusal(experiment, message, hint, host, unmet=True)


CHECK = KubernetesVersion()
