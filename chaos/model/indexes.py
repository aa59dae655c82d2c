"""Histories of pods and Events of a timeline, with indexes that grow with them: few questions are about all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from chaos.model.history import Entry, History
from chaos.model.kube import Event, Pod, controller_of, pod_condition


def controller_key(pod: Pod) -> str:
    """The uid of the pod's controller, without one its ``NAMESPACE/NAME``; "" without a controller."""
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
        self._by_controller: dict[str, dict[str, History[Pod]]] = {}
        self._by_labels: dict[str, dict[frozenset[tuple[str, str]], dict[str, History[Pod]]]] = {}  # and namespace
        self._disrupted: dict[str, History[Pod]] = {}
        self._on_unknown_node: dict[str, History[Pod]] = {}

    def index(self, uid: str) -> None:
        """Index the newest version of a pod."""
        history = self[uid]
        pod = history.last.object
        self._by_namespace.setdefault(pod.metadata.namespace, {})[uid] = history
        labels = frozenset((pod.metadata.labels or {}).items())
        self._by_labels.setdefault(pod.metadata.namespace, {}).setdefault(labels, {})[uid] = history
        if pod.spec and pod.spec.node_name:
            self._by_node.setdefault(pod.spec.node_name, {})[uid] = history
        elif history.last.final_state_unknown:
            self._on_unknown_node[uid] = history
        if key := controller_key(pod):
            self._by_controller.setdefault(key, {})[uid] = history
        if pod_condition(pod, "DisruptionTarget"):
            self._disrupted[uid] = history

    def on_nodes(self, nodes: Iterable[str]) -> list[History[Pod]]:
        """Pods that were ever bound to one of the nodes."""
        return _in_order(found for node in dict.fromkeys(nodes) for found in self._by_node.get(node, {}).values())

    def maybe_on_nodes(self, nodes: Iterable[str]) -> list[History[Pod]]:
        """Pods that were, or may have been, bound to one of the nodes."""
        return _in_order([*self.on_nodes(nodes), *self._on_unknown_node.values()])

    def in_namespace(self, namespace: str) -> list[History[Pod]]:
        return list(self._by_namespace.get(namespace, {}).values())

    def with_labels(self, namespace: str, matches: Callable[[Mapping[str, str]], bool]) -> list[History[Pod]]:
        """Pods of a namespace that ever had labels that match."""
        groups = self._by_labels.get(namespace, {}).items()
        return _in_order(history for labels, group in groups if matches(dict(labels)) for history in group.values())

    def of_controller(self, key: str) -> list[History[Pod]]:
        """Pods that ever had the controller, as of :func:`controller_key`."""
        return _in_order(self._by_controller.get(key, {}).values())

    @property
    def disrupted(self) -> list[History[Pod]]:
        """Pods that ever had a condition DisruptionTarget."""
        return _in_order(self._disrupted.values())


def _in_order(histories: Iterable[History[Pod]]) -> list[History[Pod]]:
    """Without duplicates, in the order of their first versions."""
    return sorted({id(h): h for h in histories}.values(), key=lambda h: h.versions[0].seq)


class EventLog(list[tuple[Entry, Event]]):
    """Entries and Events, in order of time."""

    def __init__(self) -> None:
        super().__init__()
        self._by_name: dict[str, list[tuple[Entry, Event]]] = {}
        self._by_reason: dict[str, list[tuple[Entry, Event]]] = {}

    def record(self, entry: Entry, event: Event) -> None:
        """Append an Event, which is also found by the name of its object and its reason."""
        item = (entry, event)
        self.append(item)
        self._by_name.setdefault(event.involved_object.name if event.involved_object else "", []).append(item)
        self._by_reason.setdefault(event.reason or "", []).append(item)

    def about(self, name: str) -> Sequence[tuple[Entry, Event]]:
        """Events about objects of that name."""
        return self._by_name.get(name, ())

    def with_reason(self, reason: str) -> Sequence[tuple[Entry, Event]]:
        return self._by_reason.get(reason, ())
