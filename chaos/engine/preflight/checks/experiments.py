"""Checks whether the cluster suits the experiments and provides the data that they read."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.duration import format_duration, satisfies
from chaos.core.number_types import in_range, parse_minor
from chaos.engine.observations import ClusterObservations, ExperimentNeeds, HostObservations
from chaos.engine.preflight.check import Diagnosis, check, experiment_refusal, ok, source_check
from chaos.verdicts.judge.facts import kubelet_fact


@check(
    "targets",
    "the experiment's targets can be selected within the limits of the inventory",
    is_final=True,
    is_compatibility_check=True,
)
def targets(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Check that enough nodes match, are Ready and unprotected, and stay within the inventory's limits."""
    failing = [each for each in observations.experiments if each.target_error]
    for experiment in failing:
        message, hint = experiment.target_error or ("", "")
        yield experiment_refusal(experiment, f"{experiment.name}: {message}", hint)
    if observations.experiments and not failing:
        yield ok("they can be selected")


@check(
    "steps",
    "each step of the experiment can run on the node, and be undone",
    is_final=True,
    is_compatibility_check=True,
)
def steps(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Check that each action can be prepared with the facts of the host."""
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


@check("permissions", "the kubeconfig's credentials have all permissions that the experiments need", is_final=True)
def permissions(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """A run that lacks a permission halfway may not be able to undo its faults either."""
    incomplete = [each for each in observations.experiments if each.missing_permissions]
    for experiment in incomplete:
        missing = "; ".join(map(str, experiment.missing_permissions))
        hint = "run nodefall rbac EXPERIMENT for the roles that are needed, and kubectl apply them"
        yield experiment_refusal(experiment, f"the kubeconfig's credentials may not {missing}", hint)
    if observations.experiments and not incomplete:
        yield ok("they have all permissions")


@check(
    "kubernetes-version",
    "the experiment supports the versions of the API server and of the kubelets",
    is_compatibility_check=True,
)
def kubernetes_version(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """``kubernetes: ">=v1.32"`` against the API server and the kubelets of the nodes that may become targets.

    Kubelets may be three minor versions older than the API server (kubernetes.io, "Version Skew Policy").
    """
    limited = [experiment for experiment in observations.experiments if experiment.kubernetes]
    found = [each for experiment in limited for each in _refusals(experiment, observations)]
    yield from found
    if limited and not found:
        yield ok("the experiments support the cluster's versions")


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


@check(
    "kubelet-requirements",
    "the kubelets meet the requirements of the experiment",
    facts=("configz",),
    is_compatibility_check=True,
)
def kubelet_requirements(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """``requires: {kubelet: {shutdownGracePeriod: ">0"}}`` against the effective configuration."""
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
    """The message and hint of each unmet requirement, and whether the actual value is known."""
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


# Each replica is scraped once.
controller_manager = source_check(
    "controller-manager",
    "each controller-manager in the inventory serves its metrics, if the experiment uses them",
    is_compatibility_check=True,
)
# Each query is sent once.
prometheus = source_check("prometheus", "the inventory's Prometheus answers the experiment's queries")
