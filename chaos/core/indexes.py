"""Histories of the pods of a timeline, with indexes that grow with them: few questions are about all.

And the name of kube-controller-manager, and its metrics that are recorded (facts 4).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from chaos.core.history import History
from chaos.core.kube import Pod, controller_of, pod_condition

CONTROLLER_MANAGER = "kube-controller-manager"
LEADER_STATUS = 'leader_election_master_status{name="kube-controller-manager"}'  # absent without leader election
METRIC_PREFIXES = (
    LEADER_STATUS,
    "attach_detach_controller_attachdetach_controller_forced_detaches{",
    "node_collector_evictions_total{",
    "node_collector_unhealthy_nodes_in_zone{",
    "node_collector_zone_health{",
    "node_collector_zone_size{",
    "pod_gc_collector_force_delete_pod_errors_total{",
    "pod_gc_collector_force_delete_pods_total{",
    "taint_eviction_controller_pod_deletions_total",
)
_REASONS = "terminated|out-of-service|orphaned|unscheduled"
# Absent until the first count: pkg/controller/volume/attachdetach/metrics and podgc/metrics.
_FROM_ZERO = re.compile(
    r'attach_detach_controller_attachdetach_controller_forced_detaches\{reason="(timeout|out-of-service)"\}'
    rf'|pod_gc_collector_force_delete_pod(s|_errors)_total\{{namespace="[^"]+",reason="({_REASONS})"\}}'
)
LabelGroup = tuple[Mapping[str, str], list[History[Pod]]]  # labels, and the pods that ever had exactly these


def starts_at_zero(name: str) -> bool:
    """Whether the absence of a metric means zero."""
    return bool(_FROM_ZERO.fullmatch(name))


def controller_key(pod: Pod) -> str:
    """The UID of the pod's controller, or else its ``NAMESPACE/NAME``; "" without a controller."""
    owner = controller_of(pod)
    return "" if owner is None else owner.uid or f"{pod.metadata.namespace}/{owner.name}"


class PodHistories(dict[str, History[Pod]]):
    """Histories by uid, in the order of their first versions.

    A pod is indexed by each node, namespace, controller and set of labels that it ever had, and as disrupted from its
    first condition DisruptionTarget on. A pod whose last states were not observed, and that was not bound before, may
    have been on any node.
    """

    def __init__(self) -> None:
        super().__init__()
        self._by_node: dict[str, dict[str, History[Pod]]] = {}
        self._by_namespace: dict[str, dict[str, History[Pod]]] = {}
        self._by_controller: dict[str, list[History[Pod]]] = {}
        self._by_labels: dict[str, dict[frozenset[tuple[str, str]], LabelGroup]] = {}  # and namespace
        self._disrupted: dict[str, History[Pod]] = {}
        self._on_unknown_node: dict[str, History[Pod]] = {}
        self.changes: list[str] = []  # uids of pods with a new version, or a narrower interval of one
        self.controller_managers: list[History[Pod]] = []  # by the names of their pods

    def index(self, uid: str, before: Pod | None) -> None:
        """Index the newest version of a pod; ``before``: its version before, None for the first."""
        history = self[uid]
        pod = history.last.object
        self.changes.append(uid)
        if before is None and pod.metadata.name.startswith(f"{CONTROLLER_MANAGER}-"):
            self.controller_managers.append(history)
        if before is None or before.metadata.namespace != pod.metadata.namespace:
            self._by_namespace.setdefault(pod.metadata.namespace, {})[uid] = history
        if before is None or not _is_labelled_alike(before, pod):
            labels, groups = pod.metadata.labels or {}, self._by_labels.setdefault(pod.metadata.namespace, {})
            groups.setdefault(frozenset(labels.items()), (labels, []))[1].append(history)
        if pod.spec and pod.spec.node_name:
            if before is None or not before.spec or before.spec.node_name != pod.spec.node_name:
                self._by_node.setdefault(pod.spec.node_name, {})[uid] = history
        elif history.last.final_state_unknown:
            self._on_unknown_node[uid] = history
        if before is None or not _is_owned_alike(before, pod):
            key = controller_key(pod)
            if key and (before is None or controller_key(before) != key):
                self._by_controller.setdefault(key, []).append(history)
        if (before is None or before.status is not pod.status) and pod_condition(pod, "DisruptionTarget"):
            self._disrupted[uid] = history

    def note_narrower(self, found: object) -> None:
        """Note that more is known of when a version, of any object, happened."""
        if isinstance(found, Pod):
            self.changes.append(found.metadata.uid)

    def was_in(self, uid: str, namespace: str) -> bool:
        return uid in self._by_namespace.get(namespace, ())

    def was_maybe_on(self, uid: str, nodes: Iterable[str]) -> bool:
        """Whether the pod was, or may have been, bound to one of the nodes."""
        return uid in self._on_unknown_node or any(uid in self._by_node.get(node, ()) for node in nodes)

    def on_nodes(self, nodes: Iterable[str]) -> list[History[Pod]]:
        """Pods that were ever bound to one of the nodes."""
        return _in_order(found for node in dict.fromkeys(nodes) for found in self._by_node.get(node, {}).values())

    def maybe_on_nodes(self, nodes: Iterable[str]) -> list[History[Pod]]:
        """Pods that were, or may have been, bound to one of the nodes."""
        return _in_order([*self.on_nodes(nodes), *self._on_unknown_node.values()])

    def in_namespace(self, namespace: str) -> list[History[Pod]]:
        return list(self._by_namespace.get(namespace, {}).values())

    def label_groups(self, namespace: str) -> Collection[LabelGroup]:
        """The sets of labels that pods of a namespace ever had: more may follow, and none ends."""
        return self._by_labels.get(namespace, {}).values()

    @staticmethod
    def in_groups(groups: Iterable[LabelGroup]) -> list[History[Pod]]:
        """Pods that ever had one of some sets of labels."""
        return _in_order(history for _, pods in groups for history in pods)

    def of_controller(self, key: str) -> list[History[Pod]]:
        """Pods that ever had the controller, as of :func:`controller_key`."""
        return _in_order(self._by_controller.get(key, ()))

    @property
    def disrupted(self) -> list[History[Pod]]:
        """Pods that ever had a condition DisruptionTarget."""
        return _in_order(self._disrupted.values())


def _is_labelled_alike(before: Pod, pod: Pod) -> bool:
    was, now = before.metadata, pod.metadata
    return was.namespace == now.namespace and (was.labels is now.labels or was.labels == now.labels)


def _is_owned_alike(before: Pod, pod: Pod) -> bool:
    """Whether both versions certainly have the same controller, because they share the owner references."""
    was, now = before.metadata, pod.metadata
    return was.owner_references is now.owner_references and was.namespace == now.namespace


def _in_order(histories: Iterable[History[Pod]]) -> list[History[Pod]]:
    """Remove duplicates, in the order of their first versions."""
    return sorted({id(h): h for h in histories}.values(), key=lambda h: h.first_seq)
