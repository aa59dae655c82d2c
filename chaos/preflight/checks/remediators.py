"""Others that repair, replace or remove nodes while we break them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from chaos.judge.budgets import matches
from chaos.model.api_fact import field
from chaos.model.kube import LabelSelector
from chaos.preflight.check import Check, Diagnosis, list_error_notes, note, ok, refusal, warning
from chaos.preflight.observations import (
    DAEMONSETS,
    DEPLOYMENTS,
    HEALTH_CHECKS,
    NODE_HEALTH_CHECKS,
    ClusterObservations,
    Need,
    machines_of,
)

# By a part of the image's name: who it is, and what it does.
_PROGRAMS = {
    "cluster-autoscaler": ("cluster-autoscaler", "removes nodes that are empty or not Ready for long"),
    "karpenter": ("Karpenter", "removes nodes that are empty, and replaces those that it takes for broken"),
    "kured": ("kured", "drains and reboots nodes"),
    "node-problem-detector": ("node-problem-detector", "sets conditions of its own on nodes"),
    "node-healthcheck": ("node-healthcheck-operator", "remediates nodes that are not Ready"),
    "self-node-remediation": ("self-node-remediation", "reboots nodes that are cut off"),
    "descheduler": ("descheduler", "evicts pods to move them"),
}
_KEEP_NODES = frozenset({"node-problem-detector", "descheduler"})  # no node goes
_OPT_OUT = {"karpenter.sh/nodepool": "karpenter.sh/do-not-disrupt"}
_PAUSED = "cluster.x-k8s.io/paused"  # an annotation; OpenShift's machines have the same
_EVERYTHING = LabelSelector()


class Remediators(Check):
    """Told by their images, and by what a Machine API keeps in the cluster; those outside of it are not seen."""

    name = "remediators"
    summary = "no autoscaler, Karpenter, MachineHealthCheck, kured or the like interferes"

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        found = list(self._diagnoses(signs))
        yield from found
        yield from list_error_notes(signs, DEPLOYMENTS, DAEMONSETS, NODE_HEALTH_CHECKS, *HEALTH_CHECKS)
        if not found:
            yield ok("none was found that acts on these hosts")

    @staticmethod
    def _diagnoses(signs: ClusterObservations) -> Iterator[Diagnosis]:
        ends = frozenset({Need.ENDS_PODS})
        for key, where in _programs(signs).items():
            who, does = _PROGRAMS[key]
            told = f"{who} ({where}) {does}"
            mend = f"stop {who} for the time of the run, or have it leave the target alone"
            yield note(told, mend, needs=ends) if key in _KEEP_NODES else warning(told, mend, needs=ends)
        for name in sorted(signs.hosts):
            labels = signs.view.nodes[name].metadata.labels or {}
            for label, opt_out in _OPT_OUT.items():
                if label in labels and "karpenter" not in _programs(signs):
                    told = f"{name} is a node of Karpenter ({label}={labels[label]}), which removes empty nodes"
                    yield warning(told, f"annotate it with {opt_out}=true for the time of the run", name, ends)
        for check, host in sorted(set(_machine_checks(signs))):
            whose = f"the machine of {host} if it stays" if host else "machines whose nodes stay"
            mend = f"pause it for the time of the run (annotation {_PAUSED})"
            yield refusal(f"MachineHealthCheck {check} replaces {whose} not Ready", mend, host, ends)
        for check, host in _node_checks(signs):
            mend = "pause it for the time of the run (spec.pauseRequests)"
            yield refusal(f"NodeHealthCheck {check} remediates {host} if it stays not Ready", mend, host, ends)


def _machine_checks(signs: ClusterObservations) -> Iterator[tuple[str, str]]:
    """The names of those that are not paused, each with a host that it watches; "" where nobody knows which it does.

    They select Machines of their namespace, and a Machine's status names its Node (Cluster API and OpenShift alike).
    """
    for path in HEALTH_CHECKS:
        machines = signs.lists.get(machines_of(path))
        for item in signs.lists.get(path, ()):
            if _PAUSED in (field(item, "/metadata/annotations") or {}):
                continue
            if machines is None:
                yield full_name(item), ""
            for machine in machines or ():
                node = field(machine, "/status/nodeRef/name")
                same = field(machine, "/metadata/namespace") == field(item, "/metadata/namespace")
                if node in signs.hosts and same and _selects(item, field(machine, "/metadata/labels")):
                    yield full_name(item), node


def _node_checks(signs: ClusterObservations) -> Iterator[tuple[str, str]]:
    """Those of medik8s: they select Nodes, and have no namespace."""
    for item in signs.lists.get(NODE_HEALTH_CHECKS, ()):
        for name in sorted(signs.hosts):
            if not field(item, "/spec/pauseRequests") and _selects(item, signs.view.nodes[name].metadata.labels):
                yield str(field(item, "/metadata/name")), name


def _selects(item: Mapping[str, Any], labels: Mapping[str, str] | None) -> bool:
    """An empty selector is one for everything."""
    selector = field(item, "/spec/selector")
    return matches(msgspec.convert(selector, LabelSelector) if selector else _EVERYTHING, labels or {})


def full_name(item: Mapping[str, Any]) -> str:
    """``namespace/name``."""
    metadata = item.get("metadata") or {}
    return f"{metadata.get('namespace')}/{metadata.get('name')}"


def _programs(signs: ClusterObservations) -> dict[str, str]:
    """Those that are there, and where."""
    found: dict[str, str] = {}
    for path in (DEPLOYMENTS, DAEMONSETS):
        for item in signs.lists.get(path, ()):
            for container in field(item, "/spec/template/spec/containers") or ():
                image = str(container.get("image", "")).partition("@")[0]
                for key in _PROGRAMS:
                    if key in image and field(item, "/spec/replicas") != 0:
                        found.setdefault(key, full_name(item))
    return dict(sorted(found.items()))


CHECK = Remediators()
