"""Measures: seconds after the fault, under names that are the same in every run of one experiment on one cluster.

Names of nodes, pods and owners are without chance: neither the run's ID nor generated names. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from msgspec import Struct

from chaos.core.kube import Pod, controller_of

WORKLOAD = "workload"  # stands for the namespace of an experiment's own workload, whose name has the ID of the run


class Kind(StrEnum):
    """The kind of a measure."""

    NODE = "node"
    ZONE = "zone"
    POD = "pod"  # that existed at the fault
    REPLACEMENT = "replacement"  # a pod that was created after the fault
    WORKLOAD = "workload"
    VOLUME = "volume"


class Measure(Struct, frozen=True, order=True):
    """One measure: ``node worker-2: Ready=Unknown``, ``pod 2 of shop/web on worker-2: deleting``.

    Pods of an owner that are interchangeable are counted: the second that is deleted, whatever its name is.
    """

    kind: Kind
    subject: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}: {self.what}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome after a fault. ``observed``: seconds for which the cluster was observed after it.

    ``seconds``: when each measure came true, in seconds after the fault, or the duration of a ``... for``. A measure
    without seconds never happened.
    """

    observed: float
    seconds: dict[Measure, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Names:
    """Other names of nodes and namespaces; what is in neither has its own.

    ``run``: the run's ID, which names of objects that a step creates contain. ``experiment`` stands for it.
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    experiment: str = ""

    @classmethod
    def of_run(cls, meta: Mapping[str, Any]) -> Names:
        """The names of a run of nodefall, by the meta entry of its recording: targets, which may be chosen by chance.

        The node of target ``victim`` is ``victim``; of several, ``victim-1``, ``victim-2`` in the order of their names.
        """
        nodes: dict[str, list[str]] = defaultdict(list)
        for node, target in sorted((meta.get("targets") or {}).items()):
            nodes[str(target)].append(node)
        names = {
            node: target if len(found) == 1 else f"{target}-{number}"
            for target, found in nodes.items()
            for number, node in enumerate(found, 1)
        }
        workload = str(meta.get("workload") or "")
        run, experiment = (str(meta.get(key) or "") for key in ("run", "experiment"))
        return cls(names, {workload: WORKLOAD} if workload else {}, run, experiment)

    def node(self, name: str) -> str:
        return self.nodes.get(name, name)

    def object(self, namespace: str, name: str) -> str:
        """NAMESPACE/NAME."""
        stable = name.replace(self.run, self.experiment) if self.run else name
        return f"{self.namespaces.get(namespace, namespace)}/{stable}"

    def owner(self, pod: Pod) -> str:
        """Name of the Deployment of a ReplicaSet's pod, else of its controller, else of the pod itself."""
        metadata, owner = pod.metadata, controller_of(pod)
        if owner is None or owner.kind == "Node":
            return self.object(metadata.namespace, metadata.name)
        name = owner.name
        if owner.kind == "ReplicaSet":
            name = name.removesuffix(f"-{(metadata.labels or {}).get('pod-template-hash', '')}")
        return self.object(metadata.namespace, name)


def target_node(pod: Pod) -> str:
    """Node that the pod is bound to, or that a DaemonSet created it for; "" if neither is known."""
    spec = pod.spec
    if spec is None or spec.node_name:
        return (spec and spec.node_name) or ""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    terms = (affinity.required.node_selector_terms if affinity and affinity.required else None) or ()
    fields = [found for term in terms for found in term.match_fields or () if found.key == "metadata.name"]
    return (fields[0].values or [""])[0] if fields else ""
