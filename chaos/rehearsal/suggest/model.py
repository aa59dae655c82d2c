"""The objects of a snapshot by what belongs together: workloads with their pods, nodes, zones, budgets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from chaos.cluster.snapshot.document import Contents, Object, is_control_plane, name_of, owner_uid
from chaos.core.labels import ZONE_LABEL
from chaos.lab.facade import is_active, labels_of, node_of, selector_matches

CLOSING = ("NoSchedule", "NoExecute")  # effects of taints that keep new pods off a node
_KINDS = {"deployments": "Deployment", "statefulsets": "StatefulSet", "replicasets": "ReplicaSet"}
_DAEMONS = "DaemonSet"
_MIRROR = "kubernetes.io/config.mirror"
CRITICAL = 2_000_000_000  # the priority of system-cluster-critical
_GRACE = 30


@dataclass(frozen=True)
class Workload:
    """What replaces its pods, or a pod without that (kind Pod). ``pods``: those that run, or will."""

    kind: str
    name: str  # NAMESPACE/NAME
    obj: Object = field(repr=False)
    pods: tuple[Object, ...] = field(repr=False)

    @property
    def key(self) -> str:
        """``StatefulSet shop/db``."""
        return f"{self.kind} {self.name}"

    @property
    def namespace(self) -> str:
        return self.name.partition("/")[0]

    @property
    def replicas(self) -> int:
        """How many pods it is to have."""
        wanted = (self.obj.get("spec") or {}).get("replicas")
        return 1 if self.kind == "Pod" or wanted is None else int(wanted)

    @cached_property
    def on_nodes(self) -> Counter[str]:
        """How many of its pods are on each node."""
        return Counter(node for pod in self.pods if (node := node_of(pod)))

    @property
    def is_on_one_node(self) -> bool:
        """Whether it has pods, all of them on the same node."""
        return len(self.on_nodes) == 1

    @property
    def pod_spec(self) -> Object:
        """The spec of its pods."""
        template = (self.obj.get("spec") or {}).get("template") or {}
        found: Object = (template.get("spec") or {}) if self.kind != "Pod" else self.obj["spec"]
        return found

    @property
    def grace(self) -> int:
        """terminationGracePeriodSeconds of its pods."""
        return int(self.pod_spec.get("terminationGracePeriodSeconds", _GRACE))

    @property
    def priority(self) -> int:
        """The priority of its pods."""
        return max((int((pod["spec"].get("priority")) or 0) for pod in self.pods), default=0)


class Model:
    """``namespace``: whose workloads and budgets are looked at; "" for all of them."""

    def __init__(self, contents: Contents, namespace: str = "") -> None:
        self.contents, self.namespace = contents, namespace
        self.nodes: Mapping[str, Object] = {name_of(node): node for node in contents.of("nodes")}
        self.workers = [name for name, node in self.nodes.items() if not is_control_plane(node)]
        self.zones: Mapping[str, tuple[str, ...]] = self._zones()
        self._owned: Mapping[str, list[Object]] = self._pods_by_owner()

    @cached_property
    def pods(self) -> list[Object]:
        """The pods that have not finished and are not being deleted."""
        return [pod for pod in self.contents.of("pods") if is_active(pod)]

    @cached_property
    def pods_on(self) -> Mapping[str, list[Object]]:
        """The pods on each node."""
        found: dict[str, list[Object]] = defaultdict(list)
        for pod in self.pods:
            found[node_of(pod)].append(pod)
        return found

    @cached_property
    def workloads(self) -> list[Workload]:
        """Deployments, StatefulSets, other ReplicaSets, and pods without a controller."""
        found = [
            Workload(kind, name_of(obj), obj, tuple(self._pods_of(obj)))
            for plural, kind in _KINDS.items()
            for obj in self.contents.of(plural)
            if (plural != "replicasets" or not owner_uid(obj)) and self._is_wanted(obj)
        ]
        bare = [pod for pod in self.pods if not pod["metadata"].get("ownerReferences") and not is_static(pod)]
        return found + [Workload("Pod", name_of(pod), pod, (pod,)) for pod in bare if self._is_wanted(pod)]

    @cached_property
    def daemons(self) -> list[Workload]:
        """DaemonSets."""
        wanted = (obj for obj in self.contents.of("daemonsets") if self._is_wanted(obj))
        return [Workload(_DAEMONS, name_of(obj), obj, tuple(self._pods_of(obj))) for obj in wanted]

    @cached_property
    def workload_of(self) -> Mapping[int, Workload]:
        """The workload of each pod, by the identity of its object."""
        return {id(pod): workload for workload in self.workloads for pod in workload.pods}

    @cached_property
    def budgets(self) -> list[tuple[Object, list[Object]]]:
        """Budgets, each with the pods that it selects."""
        by_namespace: dict[str, list[Object]] = defaultdict(list)
        for pod in self.pods:
            by_namespace[pod["metadata"].get("namespace", "")].append(pod)
        return [
            (budget, list(matching(by_namespace[budget["metadata"].get("namespace", "")], _selector(budget))))
            for budget in self.contents.of("poddisruptionbudgets")
            if self._is_wanted(budget)
        ]

    @cached_property
    def budgets_of(self) -> Mapping[int, list[str]]:
        """Names of the budgets of each pod, by the identity of its object."""
        found: dict[int, list[str]] = defaultdict(list)
        for budget, pods in self.budgets:
            for pod in pods:
                found[id(pod)].append(name_of(budget))
        return found

    @cached_property
    def blocking(self) -> frozenset[str]:
        """Names of the budgets that allow no eviction now."""
        budgets = (budget for budget, _ in self.budgets)
        return frozenset(name_of(each) for each in budgets if (each.get("status") or {}).get("disruptionsAllowed") == 0)

    def serving(self, namespace: str, service: str) -> list[Workload]:
        """The workloads behind a Service."""
        name = f"{namespace}/{service}"
        found = next((obj for obj in self.contents.of("services") if name_of(obj) == name), None)
        selector = ((found or {}).get("spec") or {}).get("selector")
        if not selector:
            return []
        wanted = [each for each in self.workloads if each.namespace == namespace]
        return [each for each in wanted if any(selector.items() <= labels_of(pod).items() for pod in each.pods)]

    def zone_of(self, node: str) -> str:
        """The zone of a node, "" without one."""
        return labels_of(self.nodes[node]).get(ZONE_LABEL, "") if node in self.nodes else ""

    def _zones(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name in self.workers:
            if zone := self.zone_of(name):
                found[zone].append(name)
        return {zone: tuple(names) for zone, names in sorted(found.items())}

    def _pods_by_owner(self) -> Mapping[str, list[Object]]:
        found: dict[str, list[Object]] = defaultdict(list)
        for pod in self.pods:
            found[owner_uid(pod)].append(pod)
        return found

    def _pods_of(self, owner: Object) -> Iterator[Object]:
        uid = str(owner["metadata"].get("uid"))
        yield from self._owned.get(uid, ())
        for item in self._sets_of.get(uid, ()):
            yield from self._owned.get(str(item["metadata"].get("uid")), ())

    @cached_property
    def _sets_of(self) -> Mapping[str, list[Object]]:
        found: dict[str, list[Object]] = defaultdict(list)
        for item in self.contents.of("replicasets"):
            found[owner_uid(item)].append(item)
        return found

    def _is_wanted(self, obj: Object) -> bool:
        return not self.namespace or obj["metadata"].get("namespace") == self.namespace


def _selector(budget: Object) -> Object | None:
    found: Object | None = (budget.get("spec") or {}).get("selector")
    return found


def matching(pods: Iterable[Object], selector: Object | None) -> Iterator[Object]:
    """The pods that a label selector selects: None selects none, an empty selector all."""
    return (pod for pod in pods if selector_matches(selector, labels_of(pod)))


def is_static(pod: Object) -> bool:
    """Whether the pod is the mirror of a static pod."""
    return _MIRROR in (pod["metadata"].get("annotations") or {})


def is_ready(node: Object) -> bool:
    """Whether the Node is Ready, or says nothing about it."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return all(each.get("status") == "True" for each in conditions if each.get("type") == "Ready")
