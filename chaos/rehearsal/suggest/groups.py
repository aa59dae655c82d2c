"""Nodes that are alike, of which only one is rehearsed.

Nodes are alike if they have the same zone, room and taints, and the same pods: of a workload that half of its pods or
more would be lost with the node, what decides how long that lasts; of the others only their kinds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from chaos.cluster.snapshot.document import Object
from chaos.lab.facade import allocatable_amount
from chaos.rehearsal.suggest.events import Victim
from chaos.rehearsal.suggest.model import Model, Workload
from chaos.rehearsal.suggest.of_workloads import unreachable_seconds

MOST = 16  # nodes that are rehearsed
Profile = tuple[object, ...]


def node_victims(model: Model) -> tuple[list[Victim], list[str]]:
    """A node of each group, at most MOST, those with the most at risk first; and the nodes that none stands for."""
    groups: dict[Profile, list[str]] = defaultdict(list)
    profiles = {name: fragile_profiles(model, name) for name in model.workers}
    for name in model.workers:
        robust = frozenset(each.kind for each in _workloads_on(model, name) if not is_fragile(each, name, model))
        fragile = tuple(sorted(Counter(map(repr, profiles[name].values())).items()))
        groups[model.zone_of(name), _shape(model.nodes[name]), robust, fragile].append(name)
    ordered = sorted(groups.values(), key=lambda names: (-len(profiles[names[0]]), -len(names), names[0]))
    victims = [Victim(names[0], (names[0],), tuple(names)) for names in _covering(ordered, model)]
    left = {name for names in groups.values() for name in names} - {n for each in victims for n in each.stands_for}
    return victims, sorted(left)


def _covering(groups: Sequence[list[str]], model: Model) -> list[list[str]]:
    """At most MOST groups: first those that have a kind of fragile workload that no earlier one has."""
    if len(groups) <= MOST:
        return list(groups)
    seen: set[Profile] = set()
    new: list[list[str]] = []
    known: list[list[str]] = []
    for names in groups:
        found = set(fragile_profiles(model, names[0]).values())
        (new if found - seen else known).append(names)
        seen |= found
    return [*new, *known][:MOST]


def zone_victims(model: Model) -> list[Victim]:
    """Every zone of several workers, if there are several zones; one of a single worker is lost with that."""
    if len(model.zones) < 2:
        return []
    return [Victim(zone, nodes, (), is_zone=True) for zone, nodes in model.zones.items() if nodes[1:]]


def victim_called(words: str, model: Model) -> Victim:
    """The node, or the zone, that a loss names: ``worker-1``, ``zone a``."""
    if words in model.nodes:
        return Victim(words, (words,))
    zone = words.removeprefix("zone ")
    return Victim(zone, model.zones[zone], is_zone=True)


def fragile_profiles(model: Model, node: str) -> dict[str, Profile]:
    """What decides how long a fragile workload of the node would be gone, by its key."""
    workloads = (each for each in _workloads_on(model, node) if is_fragile(each, node, model))
    return {each.key: profile(each, node, model) for each in workloads}


def profile(workload: Workload, node: str, model: Model) -> Profile:
    """What decides how long a workload is gone with the node."""
    pod = workload.pods[0]
    claims = sum("persistentVolumeClaim" in each for each in pod["spec"].get("volumes") or ())
    blocked = any(model.budgets_of.get(id(each)) for each in workload.pods)
    where = (pod["spec"].get("nodeSelector"), pod["spec"].get("affinity"))
    counts = (workload.replicas, workload.on_nodes[node], claims)
    return (workload.kind, *counts, workload.grace, unreachable_seconds(pod), blocked, repr(where))


def is_fragile(workload: Workload, node: str, model: Model) -> bool:
    """Whether half of the pods or more are on the node, or a budget allows none of them to be evicted."""
    if workload.kind == "Pod" or 2 * workload.on_nodes[node] >= workload.replicas:
        return True
    return any(name in model.blocking for pod in workload.pods for name in model.budgets_of.get(id(pod), ()))


def _workloads_on(model: Model, node: str) -> list[Workload]:
    found = (model.workload_of.get(id(pod)) for pod in model.pods_on.get(node, []))
    return list({each.key: each for each in found if each}.values())


def _shape(node: Object) -> Profile:
    """Room in whole CPUs and GiB: nodes of one kind differ in a few KiB."""
    taints = sorted((each["key"], each["effect"]) for each in (node.get("spec") or {}).get("taints") or ())
    info = (node.get("status") or {}).get("nodeInfo") or {}
    cpus, memory = allocatable_amount(node, "cpu") // 1000, allocatable_amount(node, "memory") >> 30
    return (cpus, memory, repr(taints), info.get("operatingSystem"))
