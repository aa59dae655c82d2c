"""Others that repair, replace or remove nodes while we break them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chaos.doctor.check import Check, Diagnosis, note, ok, refusal, unlisted, warning
from chaos.doctor.signs import DAEMONSETS, DEPLOYMENTS, HEALTH_CHECKS, Need, Signs
from chaos.model.apifact import field

# By a part of the image's name: who it is, and what it does.
_PROGRAMS = {
    "cluster-autoscaler": ("cluster-autoscaler", "removes nodes that are empty or not Ready for long"),
    "karpenter": ("Karpenter", "removes nodes that are empty, and replaces those that it takes for broken"),
    "kured": ("kured", "drains and reboots nodes"),
    "node-problem-detector": ("node-problem-detector", "sets conditions of its own on nodes"),
    "node-healthcheck-operator": ("node-healthcheck-operator", "remediates nodes that are not Ready"),
    "self-node-remediation": ("self-node-remediation", "reboots nodes that are cut off"),
    "descheduler": ("descheduler", "evicts pods to move them"),
}
_HARMLESS = frozenset({"node-problem-detector", "descheduler"})  # no node goes
_OPT_OUT = {"karpenter.sh/nodepool": "karpenter.sh/do-not-disrupt"}


class Remediators(Check):
    """Told by their images, and by what a Machine API keeps in the cluster; those outside of it are not seen."""

    name = "remediators"
    summary = "no autoscaler, Karpenter, MachineHealthCheck, kured or the like interferes"

    def look(self, signs: Signs) -> Iterator[Diagnosis]:
        found = list(self._found(signs))
        yield from found
        yield from unlisted(signs, DEPLOYMENTS, DAEMONSETS, *HEALTH_CHECKS)
        if not found:
            yield ok("none was found")

    @staticmethod
    def _found(signs: Signs) -> Iterator[Diagnosis]:
        ends = frozenset({Need.ENDS_PODS})
        for key, where in _programs(signs).items():
            who, does = _PROGRAMS[key]
            told = f"{who} ({where}) {does}"
            mend = f"stop {who} for the time of the run, or have it leave the target alone"
            yield note(told, mend, needs=ends) if key in _HARMLESS else warning(told, mend, needs=ends)
        for name in sorted(signs.hosts):
            labels = signs.view.nodes[name].metadata.labels or {}
            for label, opt_out in _OPT_OUT.items():
                if label in labels and "karpenter" not in _programs(signs):
                    told = f"{name} is a node of Karpenter ({label}={labels[label]}), which removes empty nodes"
                    yield warning(told, f"annotate it with {opt_out}=true for the time of the run", name, ends)
        checks = {full_name(item) for path in HEALTH_CHECKS for item in signs.lists.get(path, ())}
        if checks:
            told = f"MachineHealthCheck {', '.join(sorted(checks))} replaces machines whose nodes stay not Ready"
            yield refusal(told, "pause it for the time of the run (cluster.x-k8s.io/paused)", needs=ends)


def full_name(item: Mapping[str, Any]) -> str:
    """``namespace/name``."""
    metadata = item.get("metadata") or {}
    return f"{metadata.get('namespace')}/{metadata.get('name')}"


def _programs(signs: Signs) -> dict[str, str]:
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
