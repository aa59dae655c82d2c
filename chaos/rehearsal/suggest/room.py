"""Weakness no-room: what runs on a node, and would find no other node if that one were lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from chaos.cluster.snapshot.document import Object, name_of
from chaos.core.text import count_of
from chaos.lab.facade import (
    TermIndex,
    allocatable_amount,
    allocatable_pods,
    labels_of,
    matches_node,
    node_of,
    repelling_terms,
    requests_of,
    untolerated,
)
from chaos.rehearsal.suggest.model import CLOSING, Model, Workload, is_ready
from chaos.rehearsal.suggest.weakness import Weakness, WeaknessKind

_RESOURCES = ("cpu", "memory")
_LABELS, _FULL, _APART, _CLOSED = "wrong labels", "too little cpu, memory or pods left", "pod anti-affinity", "taints"


@dataclass
class _Misfits:
    """Pods of one workload that fit nowhere. ``nodes``: whose loss that follows from; ``reasons`` of the worst node."""

    workload: Workload
    nodes: list[str] = field(default_factory=list)
    pods: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class _Room:
    """What is free on each node that takes pods, and which of them a workload's pods may use."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.nodes = {name: node for name, node in model.nodes.items() if _takes_pods(node)}
        self._free = {name: self._unused(name) for name in self.nodes}
        self._refusals: dict[str, dict[str, str]] = {}
        self._index = TermIndex()
        for namespace in model.contents.of("namespaces"):
            self._index.put_namespace(name_of(namespace), labels_of(namespace))

    def lost(self, node: str) -> Iterator[tuple[Workload, Counter[str]]]:
        """Pods of a lost node without another one: their workload, and the number of nodes by what is in the way."""
        pods = [pod for pod in self._model.pods_on.get(node, []) if id(pod) in self._model.workload_of]
        free: dict[str, list[int]] = {}
        for pod in sorted(pods, key=lambda pod: -int(pod["spec"].get("priority") or 0)):
            workload = self._model.workload_of[id(pod)]
            if workload.kind != "Pod":
                reasons = self._place(pod, workload, node, free)
                if reasons is not None:
                    yield workload, reasons

    def _place(self, pod: Object, workload: Workload, lost: str, free: dict[str, list[int]]) -> Counter[str] | None:
        """None if a node takes the pod, whose room is then less; else what is in the way."""
        refusals, needed = self._refused(pod, workload), _needed(pod)
        apart, reasons = _Apart(pod, lost, self._model, self._index), Counter[str]()
        for name, node in self.nodes.items():
            if name == lost:
                continue
            room = free.get(name) or self._free[name]
            reason = refusals[name] or (apart.refuses(node) and _APART)
            if not reason and all(have >= need for have, need in zip(room, needed, strict=True)):
                free[name] = [have - need for have, need in zip(room, needed, strict=True)]
                return None
            reasons[reason or _FULL] += 1
        return reasons

    def _refused(self, pod: Object, workload: Workload) -> dict[str, str]:
        """Why each node takes no pod of the workload, however much room it has; "" if it does."""
        if workload.key not in self._refusals:
            self._refusals[workload.key] = {name: _refusal(pod, node) for name, node in self.nodes.items()}
        return self._refusals[workload.key]

    def _unused(self, name: str) -> list[int]:
        used = [sum(amounts) for amounts in zip(*map(_needed, self._model.pods_on.get(name, [])), strict=True)]
        node = self.nodes[name]
        whole = [*(allocatable_amount(node, resource) for resource in _RESOURCES), allocatable_pods(node)]
        return [have - need for have, need in zip(whole, used or [0] * len(whole), strict=True)]


class _Apart:
    """The required anti-affinity of a pod to others, which those on the lost node no longer matter for."""

    def __init__(self, pod: Object, lost: str, model: Model, index: TermIndex) -> None:
        self._taken: list[tuple[str, set[str]]] = []
        for term in repelling_terms(pod):
            others = (each for each in model.pods if each is not pod and node_of(each) not in ("", lost))
            nodes = {node_of(each) for each in others if index.matches(term, each)}
            domains = {labels_of(model.nodes[node]).get(term.topology_key) for node in nodes if node in model.nodes}
            self._taken.append((term.topology_key, {each for each in domains if each}))

    def refuses(self, node: Object) -> bool:
        """Whether a pod that it is to be apart from is in the same domain as the node."""
        return any(labels_of(node).get(key) in taken for key, taken in self._taken)


def no_room(model: Model) -> Iterator[Weakness]:
    """Workloads with pods for which there is no room if a node that runs them is lost, one after the other."""
    room, found = _Room(model), dict[str, _Misfits]()
    for node in model.workers:
        of_node: Mapping[str, list[Counter[str]]] = defaultdict(list)
        workloads: dict[str, Workload] = {}
        for workload, reasons in room.lost(node):
            of_node[workload.key].append(reasons)
            workloads[workload.key] = workload
        for key, reasons_of in of_node.items():
            misfits = found.setdefault(key, _Misfits(workloads[key]))
            misfits.nodes.append(node)
            if len(reasons_of) > misfits.pods:
                misfits.pods, misfits.reasons = len(reasons_of), reasons_of[-1]
    for misfits in found.values():
        yield _weakness(misfits, len(room.nodes))


def _weakness(misfits: _Misfits, nodes: int) -> Weakness:
    key, why = misfits.workload.key, ", ".join(f"{reason} ({n})" for reason, n in misfits.reasons.most_common())
    more = f" (or one of {len(misfits.nodes) - 1} others)" if misfits.nodes[1:] else ""
    return Weakness(
        WeaknessKind.NO_ROOM,
        key,
        (key, *(f"Node {name}" for name in misfits.nodes)),
        {"pods": misfits.pods, "nodes": len(misfits.nodes), "others": nodes - 1},
        f"If {misfits.nodes[0]}{more} is lost, {count_of(misfits.pods, 'pod')} of {key} would fit on none of "
        f"{nodes - 1} other nodes: {why or 'there is no other'}.",
        "add a node, lower requests, or allow more nodes",
        "nodes=+1",
    )


def _needed(pod: Object) -> list[int]:
    requests = requests_of(pod)
    return [*(requests[resource] for resource in _RESOURCES), 1]


def _refusal(pod: Object, node: Object) -> str:
    if not matches_node(pod, node):
        return _LABELS
    taints = (node.get("spec") or {}).get("taints") or ()
    return _CLOSED if untolerated(pod, taints, CLOSING) else ""


def _takes_pods(node: Object) -> bool:
    return is_ready(node) and not (node.get("spec") or {}).get("unschedulable")
