"""Controllers that repair, replace or remove nodes during a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from chaos.core.api_fact import field
from chaos.core.kube import LabelSelector
from chaos.engine.observations import (
    DAEMONSETS,
    DEPLOYMENTS,
    HEALTH_CHECKS,
    NODE_HEALTH_CHECKS,
    ClusterObservations,
    Need,
    machines_of,
)
from chaos.engine.preflight.check import (
    Diagnosis,
    check,
    list_error_notes,
    note,
    ok,
    refusal,
    warning,
)
from chaos.verdicts.judge.budgets import matches

# By a part of the image's name: the program, and what it does.
PROGRAMS = {
    "cluster-autoscaler": ("cluster-autoscaler", "removes nodes that are empty or not Ready for long"),
    "karpenter": ("Karpenter", "removes nodes that are empty, and replaces those that it considers broken"),
    "kured": ("kured", "drains and reboots nodes"),
    "node-problem-detector": ("node-problem-detector", "sets conditions on nodes"),
    "node-healthcheck": ("node-healthcheck-operator", "remediates nodes that are not Ready"),
    "self-node-remediation": ("self-node-remediation", "reboots nodes that are cut off"),
    "descheduler": ("descheduler", "evicts pods to move them"),
}
_KEEP_NODES = frozenset({"node-problem-detector", "descheduler"})  # they do not remove nodes
_OPT_OUT = {"karpenter.sh/nodepool": "karpenter.sh/do-not-disrupt"}
_PAUSED = "cluster.x-k8s.io/paused"  # an annotation; OpenShift's machines have the same
_EVERYTHING = LabelSelector()


def _diagnoses(observations: ClusterObservations) -> Iterator[Diagnosis]:
    needs = frozenset({Need.ENDS_PODS})
    for key, where in _programs(observations).items():
        program, effect = PROGRAMS[key]
        message = f"{program} ({where}) {effect}"
        hint = f"stop {program} during the run, or exclude the target from it"
        yield note(message, hint, needs=needs) if key in _KEEP_NODES else warning(message, hint, needs=needs)
    for name in sorted(observations.hosts):
        labels = observations.view.nodes[name].metadata.labels or {}
        for label, opt_out in _OPT_OUT.items():
            if label in labels and "karpenter" not in _programs(observations):
                message = f"{name} is a node of Karpenter ({label}={labels[label]}), which removes empty nodes"
                yield warning(message, f"annotate it with {opt_out}=true during the run", name, needs)
    for health_check, host in sorted(set(_machine_checks(observations))):
        machines = f"the machine of {host} if it stays" if host else "machines whose nodes stay"
        hint = f"pause it during the run (annotation {_PAUSED})"
        yield refusal(f"MachineHealthCheck {health_check} replaces {machines} not Ready", hint, host, needs)
    for health_check, host in _node_checks(observations):
        hint = "pause it during the run (spec.pauseRequests)"
        yield refusal(f"NodeHealthCheck {health_check} remediates {host} if it stays not Ready", hint, host, needs)


@check("remediators", "no autoscaler, Karpenter, MachineHealthCheck, kured or the like interferes")
def remediators(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Detect remediators by their images and Machine API objects; controllers outside the cluster are not detected."""
    found = list(_diagnoses(observations))
    yield from found
    yield from list_error_notes(observations, DEPLOYMENTS, DAEMONSETS, NODE_HEALTH_CHECKS, *HEALTH_CHECKS)
    if not found:
        yield ok("none found that acts on these hosts")


def _machine_checks(observations: ClusterObservations) -> Iterator[tuple[str, str]]:
    """Each unpaused MachineHealthCheck, with a host that it covers; "" if its Machines are unknown.

    A check selects Machines of its namespace, and a Machine's status names its Node (Cluster API and OpenShift alike).
    """
    for path in HEALTH_CHECKS:
        machines = observations.lists.get(machines_of(path))
        for item in observations.lists.get(path, ()):
            if _PAUSED in (field(item, "/metadata/annotations") or {}):
                continue
            if machines is None:
                yield full_name(item), ""
            for machine in machines or ():
                node = field(machine, "/status/nodeRef/name")
                same = field(machine, "/metadata/namespace") == field(item, "/metadata/namespace")
                if node in observations.hosts and same and _selects(item, field(machine, "/metadata/labels")):
                    yield full_name(item), node


def _node_checks(observations: ClusterObservations) -> Iterator[tuple[str, str]]:
    """Each medik8s NodeHealthCheck, with a host that it covers. NodeHealthChecks have no namespace."""
    for item in observations.lists.get(NODE_HEALTH_CHECKS, ()):
        for name in sorted(observations.hosts):
            if not field(item, "/spec/pauseRequests") and _selects(item, observations.view.nodes[name].metadata.labels):
                yield str(field(item, "/metadata/name")), name


def _selects(item: Mapping[str, Any], labels: Mapping[str, str] | None) -> bool:
    """Whether the object's selector matches; an empty selector matches everything."""
    selector = field(item, "/spec/selector")
    return matches(msgspec.convert(selector, LabelSelector) if selector else _EVERYTHING, labels or {})


def full_name(item: Mapping[str, Any]) -> str:
    """``namespace/name``."""
    metadata = item.get("metadata") or {}
    return f"{metadata.get('namespace')}/{metadata.get('name')}"


def _programs(observations: ClusterObservations) -> dict[str, str]:
    """The keys of the installed programs, each with its workload."""
    found: dict[str, str] = {}
    for path in (DEPLOYMENTS, DAEMONSETS):
        for item in observations.lists.get(path, ()):
            for container in field(item, "/spec/template/spec/containers") or ():
                image = str(container.get("image", "")).partition("@")[0]
                for key in PROGRAMS:
                    if key in image and field(item, "/spec/replicas") != 0:
                        found.setdefault(key, full_name(item))
    return dict(sorted(found.items()))
