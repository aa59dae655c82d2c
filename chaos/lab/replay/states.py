"""Histories as sequences of states: of nodes, and of pods by identity. No clock, no lab."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from chaos.lab.objects.accessors import (
    Object,
    condition,
    condition_status,
    controller_of,
    is_active,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    uid_of,
)
from chaos.lab.replay.recording import Observation

MERGE_WINDOW = 1.0  # changes within so many seconds are one state
_TERMINAL_PHASES = ("Succeeded", "Failed")
_INTERCHANGEABLE_OWNERS = ("ReplicaSet", "Job")  # owners whose pods have no identity
_ELAPSED = re.compile(r" [0-9hms.]+ ago")  # "pleg was last seen active 3m1.2s ago" changes with every sync


class NodeState(NamedTuple):
    """What is compared of a node."""

    ready: str
    reason: str
    message: str
    taints: frozenset[str]

    def __str__(self) -> str:
        taints = ", ".join(sorted(self.taints)) or "none"
        return f"Ready={self.ready} {self.reason} {self.message!r}, taints {taints}"


class PodState(NamedTuple):
    """What is compared of a pod."""

    phase: str
    reason: str
    disruption: str
    deleting: bool
    ready: str

    def __str__(self) -> str:
        words = [self.phase, self.reason, f"DisruptionTarget={self.disruption}" if self.disruption else ""]
        words += ["deleting" if self.deleting else "", f"Ready={self.ready or 'unset'}"]
        return " ".join(word for word in words if word)


State = NodeState | PodState


@dataclass(frozen=True, slots=True)
class Transition:
    """A state and when it was reached, epoch seconds."""

    t: float
    state: State


@dataclass(slots=True)
class StateHistory:
    """All states of one subject, each different from the one before. ``gone``: when it was removed.

    ``alike``: tracks with the same are exchangeable, as equal pods of one owner on one node are: which of them goes
    first leaves no trace. ``owner``: of a pod, as :func:`owner_of`. ``after``: key of the track that it replaces;
    ``old_node``: where that was.
    """

    key: str
    subject: str
    node: str
    equivalence_key: str
    owner: str = ""
    replaced_key: str = ""
    replaced_node: str = ""
    transitions: list[Transition] = field(default_factory=list)
    removed_at: float | None = None

    def add(self, t: float, state: State) -> None:
        if not self.transitions or self.transitions[-1].state != state:
            self.transitions.append(Transition(t, state))

    def stable_transitions(self) -> list[Transition]:
        """Those that are not followed by another within a second."""
        kept: list[Transition] = []
        for index, moment in enumerate(self.transitions):
            passing = index + 1 < len(self.transitions) and self.transitions[index + 1].t - moment.t <= MERGE_WINDOW
            if not passing and (not kept or kept[-1].state != moment.state):
                kept.append(moment)
        return kept


def node_state(node: Object) -> NodeState:
    """Ready's status, reason and message, and the taints as key:effect."""
    ready = condition(node, "Ready") or {}
    taints = frozenset(f"{item['key']}:{item['effect']}" for item in node.get("spec", {}).get("taints") or [])
    message = _ELAPSED.sub(" ago", ready.get("message", ""))
    return NodeState(ready.get("status", ""), ready.get("reason", ""), message, taints)


def pod_state(pod: Object, deleted: bool = False) -> PodState:
    """Phase, reason, reason of a true DisruptionTarget, whether it is being deleted, Ready's status."""
    status = pod.get("status", {})
    target = condition(pod, "DisruptionTarget") or {}
    return PodState(
        status.get("phase", ""),
        status.get("reason", ""),
        target.get("reason", "") if target.get("status") == "True" else "",
        deleted or "deletionTimestamp" in pod["metadata"],
        condition_status(pod, "Ready"),
    )


def node_histories(seen: Iterable[Observation]) -> dict[str, StateHistory]:
    """By name."""
    tracks: dict[str, StateHistory] = {}
    for item in seen:
        name = name_of(item.object)
        key = f"node {name}"
        track = tracks.setdefault(key, StateHistory(key, key, name, key))
        if item.type == "DELETED":
            track.removed_at = item.t
        else:
            track.removed_at = None
            track.add(item.t, node_state(item.object))
    return tracks


def pod_histories(seen: Iterable[Observation]) -> dict[str, StateHistory]:
    """By uid for those of the first list; replacements by owner, old node and order."""
    return _PodMatcher().run(seen)


@dataclass(slots=True)
class _LostPod:
    node: str
    name: str
    key: str


class _PodMatcher:
    """Pairs each new pod with the pod of its owner that was lost first and has no replacement yet."""

    def __init__(self) -> None:
        self._histories: dict[str, StateHistory] = {}
        self._key: dict[str, str] = {}
        self._lost: dict[str, list[_LostPod]] = {}
        self._lost_uids: set[str] = set()
        self._order: Counter[str] = Counter()

    def run(self, seen: Iterable[Observation]) -> dict[str, StateHistory]:
        for item in seen:
            self._add(item)
        return self._histories

    def _add(self, item: Observation) -> None:
        uid = uid_of(item.object)
        if uid not in self._key:
            self._key[uid] = self._new_history(item)
        track = self._histories[self._key[uid]]
        track.node = node_of(item.object) or track.node
        track.add(item.t, pod_state(item.object, item.type == "DELETED"))
        if item.type == "DELETED":
            track.removed_at = item.t
        state = track.transitions[-1].state
        if (
            isinstance(state, PodState)
            and (state.deleting or state.phase in _TERMINAL_PHASES)
            and uid not in self._lost_uids
        ):
            self._lost_uids.add(uid)
            if item.type == "LIST" and (controller_of(item.object) or {}).get("kind") == "ReplicaSet":
                return  # replaced before the recording began
            lost = _LostPod(_target_node(item.object), name_of(item.object), track.key)
            self._lost.setdefault(owner_of(item.object), []).append(lost)

    def _new_history(self, item: Observation) -> str:
        pod = item.object
        subject = f"pod {namespace_of(pod)}/{name_of(pod)}"
        pooled = (controller_of(pod) or {}).get("kind") in _INTERCHANGEABLE_OWNERS
        if item.type == "LIST":
            key = alike = uid_of(pod)
            if pooled and is_active(pod):
                revision = labels_of(pod).get("pod-template-hash", "")
                alike = f"{owner_of(pod)} {revision} on {node_of(pod)}"
            self._histories[key] = StateHistory(key, subject, node_of(pod), alike, owner_of(pod))
            return key
        old = self._replaced_pod(pod)
        where = f"{owner_of(pod)} from {old.node or 'nowhere'}" if old else f"{owner_of(pod)} anew"
        self._order[where] += 1
        key = f"replacement {self._order[where]} of {where}"
        track = StateHistory(key, key, node_of(pod), f"new of {owner_of(pod)}" if pooled else key, owner_of(pod))
        if old:
            track.replaced_key, track.replaced_node = old.key, old.node
        self._histories[key] = track
        return key

    def _replaced_pod(self, pod: Object) -> _LostPod | None:
        """A StatefulSet replaces by name, a DaemonSet by node; the others take the one that was lost first."""
        lost = self._lost.get(owner_of(pod), [])
        kind = (controller_of(pod) or {}).get("kind", "")
        for old in lost:
            if kind == "StatefulSet" and old.name != name_of(pod):
                continue
            if kind == "DaemonSet" and old.node != _target_node(pod):
                continue
            lost.remove(old)
            return old
        return None


def owner_of(pod: Object) -> str:
    """Namespace/name of what owns the pod; a ReplicaSet of a Deployment stands for that. Bare pods own themselves."""
    owner = controller_of(pod)
    if owner is None:
        return f"{namespace_of(pod)}/{name_of(pod)}"
    name = str(owner["name"])
    digest = (pod["metadata"].get("labels") or {}).get("pod-template-hash")
    if owner["kind"] == "ReplicaSet" and digest:
        name = re.sub(f"-{re.escape(digest)}$", "", name)
    return f"{namespace_of(pod)}/{name}"


def _target_node(pod: Object) -> str:
    """The node it is bound to, or made for by a DaemonSet."""
    if node_of(pod):
        return node_of(pod)
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or []:
        for field_ in term.get("matchFields") or []:
            return str(field_["values"][0])
    return ""
