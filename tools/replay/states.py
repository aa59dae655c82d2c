"""State histories of nodes, of volumes, and of pods by identity. Pure: no clock, no lab."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from chaos.lab.objects import (
    Object,
    condition,
    condition_status,
    controller_of,
    is_active,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    uid_of,
)
from chaos.lab.recorded.recording import Observation
from chaos.lab.snapshot.restored import owner_of

MERGE_WINDOW = 1.0  # seconds; changes this close together count as one state
_TERMINAL_PHASES = ("Succeeded", "Failed")
_INTERCHANGEABLE_OWNERS = ("ReplicaSet", "Job")  # kinds whose pods are interchangeable
_ELAPSED = re.compile(r" [0-9hms.]+ ago")  # "pleg was last seen active 3m1.2s ago" changes with every sync


class NodeState(NamedTuple):
    """Compared part of a node."""

    ready: str
    reason: str
    message: str
    taints: frozenset[str]

    def __str__(self) -> str:
        taints = ", ".join(sorted(self.taints)) or "none"
        return f"Ready={self.ready} {self.reason} {self.message!r}, taints {taints}"


class PodState(NamedTuple):
    """Compared part of a pod."""

    phase: str
    reason: str
    disruption: str
    deleting: bool
    ready: str

    def __str__(self) -> str:
        words = [self.phase, self.reason, f"DisruptionTarget={self.disruption}" if self.disruption else ""]
        words += ["deleting" if self.deleting else "", f"Ready={self.ready or 'unset'}"]
        return " ".join(word for word in words if word)


class VolumeState(NamedTuple):
    """Compared part of a PersistentVolume or a claim."""

    phase: str

    def __str__(self) -> str:
        return self.phase or "no phase"


class AttachmentState(NamedTuple):
    """Compared part of a VolumeAttachment."""

    attached: bool
    deleting: bool

    def __str__(self) -> str:
        return ("attached" if self.attached else "not attached") + (" deleting" if self.deleting else "")


State = NodeState | PodState | VolumeState | AttachmentState


@dataclass(frozen=True, slots=True)
class Transition:
    """A state and the time at which it was reached, in epoch seconds."""

    t: float
    state: State


@dataclass(slots=True)
class StateHistory:
    """All states of one subject, each different from its predecessor.

    Histories with the same ``equivalence_key`` are interchangeable, such as equal pods of one owner on one node: the
    order in which they end leaves no trace. ``owner`` of a pod is :func:`owner_of`, of an attachment its claim.
    ``replaced_key`` is the key of the history that this one replaces, ``replaced_node`` the last node of that pod.
    ``removed_at`` is in epoch seconds.
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
        """Add a transition at ``t`` unless the state is unchanged."""
        if not self.transitions or self.transitions[-1].state != state:
            self.transitions.append(Transition(t, state))

    def stable_transitions(self) -> list[Transition]:
        """Transitions that are not followed by another within MERGE_WINDOW."""
        stable: list[Transition] = []
        for index, transition in enumerate(self.transitions):
            following = self.transitions[index + 1 : index + 2]
            if following and following[0].t - transition.t <= MERGE_WINDOW:
                continue
            if not stable or stable[-1].state != transition.state:
                stable.append(transition)
        return stable


def node_state(node: Object) -> NodeState:
    """Status, reason and message of the Ready condition, and the taints as key:effect."""
    ready = condition(node, "Ready") or {}
    taints = frozenset(f"{item['key']}:{item['effect']}" for item in node.get("spec", {}).get("taints") or [])
    message = _ELAPSED.sub(" ago", ready.get("message", ""))
    return NodeState(ready.get("status", ""), ready.get("reason", ""), message, taints)


def pod_state(pod: Object, deleted: bool = False) -> PodState:
    """Phase, reason, reason of a true DisruptionTarget, pending deletion, and status of Ready."""
    status = pod.get("status", {})
    target = condition(pod, "DisruptionTarget") or {}
    return PodState(
        status.get("phase", ""),
        status.get("reason", ""),
        target.get("reason", "") if target.get("status") == "True" else "",
        deleted or "deletionTimestamp" in pod["metadata"],
        condition_status(pod, "Ready"),
    )


def node_histories(observations: Iterable[Observation]) -> dict[str, StateHistory]:
    """Histories of nodes by key ``node NAME``."""
    histories: dict[str, StateHistory] = {}
    for item in observations:
        name = name_of(item.object)
        key = f"node {name}"
        history = histories.setdefault(key, StateHistory(key, key, name, key))
        if item.type == "DELETED":
            history.removed_at = item.t
        else:
            history.removed_at = None
            history.add(item.t, node_state(item.object))
    return histories


def pod_histories(observations: Iterable[Observation]) -> dict[str, StateHistory]:
    """Histories of pods: by UID for pods of the first list, by owner, replaced node and order for replacements."""
    return _PodMatcher().run(observations)


@dataclass(slots=True)
class _LostPod:
    node: str
    name: str
    key: str


class _PodMatcher:
    """Matches each new pod with the pod of its owner that was lost first and has no replacement yet."""

    def __init__(self) -> None:
        self._histories: dict[str, StateHistory] = {}
        self._key_by_uid: dict[str, str] = {}
        self._lost: dict[str, list[_LostPod]] = {}
        self._lost_uids: set[str] = set()
        self._order: Counter[str] = Counter()
        self._bound_to: dict[str, str] = {}  # node by uid, also of pods that are bound later

    def run(self, observations: Iterable[Observation]) -> dict[str, StateHistory]:
        items = list(observations)
        self._bound_to = {uid_of(item.object): node_of(item.object) for item in items if node_of(item.object)}
        for item in items:
            self._add(item)
        return self._histories

    def _add(self, item: Observation) -> None:
        uid = uid_of(item.object)
        if uid not in self._key_by_uid:
            self._key_by_uid[uid] = self._new_history(item)
        history = self._histories[self._key_by_uid[uid]]
        history.node = node_of(item.object) or history.node
        history.add(item.t, pod_state(item.object, item.type == "DELETED"))
        if item.type == "DELETED":
            history.removed_at = item.t
        state = history.transitions[-1].state
        is_lost = isinstance(state, PodState) and (state.deleting or state.phase in _TERMINAL_PHASES)
        if is_lost and uid not in self._lost_uids:
            self._lost_uids.add(uid)
            if item.type == "LIST" and (controller_of(item.object) or {}).get("kind") == "ReplicaSet":
                return  # replaced before the recording began
            lost = _LostPod(self._target_node(item.object), name_of(item.object), history.key)
            self._lost.setdefault(owner_of(item.object), []).append(lost)

    def _new_history(self, item: Observation) -> str:
        pod = item.object
        subject = f"pod {namespace_of(pod)}/{name_of(pod)}"
        is_interchangeable = (controller_of(pod) or {}).get("kind") in _INTERCHANGEABLE_OWNERS
        if item.type == "LIST":
            key = equivalence_key = uid_of(pod)
            if is_interchangeable and is_active(pod):
                revision = labels_of(pod).get("pod-template-hash", "")
                equivalence_key = f"{owner_of(pod)} {revision} on {node_of(pod)}"
            self._histories[key] = StateHistory(key, subject, node_of(pod), equivalence_key, owner_of(pod))
            return key
        old = self._replaced_pod(pod)
        where = f"{owner_of(pod)} from {old.node or 'no node'}" if old else f"{owner_of(pod)} without predecessor"
        self._order[where] += 1
        key = f"replacement {self._order[where]} of {where}"
        equivalence_key = f"new of {owner_of(pod)}" if is_interchangeable else key
        history = StateHistory(key, key, node_of(pod), equivalence_key, owner_of(pod))
        if old:
            history.replaced_key, history.replaced_node = old.key, old.node
        self._histories[key] = history
        return key

    def _target_node(self, pod: Object) -> str:
        """Node that the pod is bound to, that a DaemonSet created it for, or that it will be bound to."""
        return node_of(pod) or _required_node(pod) or self._bound_to.get(uid_of(pod), "")

    def _replaced_pod(self, pod: Object) -> _LostPod | None:
        """Pod that ``pod`` replaces: same name in a StatefulSet, same node in a DaemonSet, else the first lost."""
        lost = self._lost.get(owner_of(pod), [])
        kind = (controller_of(pod) or {}).get("kind", "")
        for old in lost:
            if kind == "StatefulSet" and old.name != name_of(pod):
                continue
            if kind == "DaemonSet" and old.node != self._target_node(pod):
                continue
            lost.remove(old)
            return old
        return None


def _required_node(pod: Object) -> str:
    """Node that a DaemonSet created the pod for, as far as its affinity was recorded."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or []:
        for field_ in term.get("matchFields") or []:
            return str(field_["values"][0])
    return ""


def volume_histories(observations: dict[str, list[Observation]]) -> dict[str, StateHistory]:
    """Histories of volumes, claims and attachments; volumes by claim, as the names of provisioned ones are random."""
    histories: dict[str, StateHistory] = {}
    claims = {
        name_of(item.object): _claim_of(item.object)
        for item in observations.get("persistentvolumes", [])
        if item.object["spec"].get("claimRef")
    }
    for item, key, node, volume, state in _states(observations, claims):
        history = histories.setdefault(key, StateHistory(key, key, node, key, volume))
        history.removed_at = item.t if item.type == "DELETED" else None
        if item.type != "DELETED":
            history.add(item.t, state)
    return {key: history for key, history in histories.items() if history.transitions}


def _states(
    observations: dict[str, list[Observation]], claims: dict[str, str]
) -> Iterator[tuple[Observation, str, str, str, VolumeState | AttachmentState]]:
    """Each observation with its history's key, the node, the volume's name or claim, and the state."""
    for item in observations.get("persistentvolumes", []):
        name = claims.get(name_of(item.object), name_of(item.object))
        phase = (item.object.get("status") or {}).get("phase", "")
        yield item, f"volume of {name}", "", name, VolumeState(phase)
    for item in observations.get("persistentvolumeclaims", []):
        name = f"{namespace_of(item.object)}/{name_of(item.object)}"
        phase = (item.object.get("status") or {}).get("phase", "")
        yield item, f"claim {name}", "", name, VolumeState(phase)
    for item in observations.get("volumeattachments", []):
        spec, status = item.object["spec"], item.object.get("status") or {}
        volume = spec["source"].get("persistentVolumeName", "")
        name, node = claims.get(volume, volume), spec["nodeName"]
        state = AttachmentState(bool(status.get("attached")), is_deleting(item.object))
        yield item, f"attachment of {name} to {node}", node, name, state


def _claim_of(volume: Object) -> str:
    reference = volume["spec"]["claimRef"]
    return f"{reference['namespace']}/{reference['name']}"
