"""Victims whose removal lets a pod of higher priority fit: pure. kube-scheduler's plugin DefaultPreemption."""

from __future__ import annotations

from chaos.lab.controllers.scheduler.filters import UNRESOLVABLE, refusal
from chaos.lab.controllers.scheduler.snapshot import Key, Snapshot
from chaos.lab.objects.accessors import Object, is_deleting, labels_of, name_of, namespace_of, selector_matches, uid_of

Rank = tuple[int, int, int, int, str]


def select_candidate(pod: Object, snapshot: Snapshot, budgets: list[Object]) -> tuple[str, list[Object]] | None:
    """Node and victims of the best preemption; None if none helps, or if one is in progress."""
    if pod["spec"].get("preemptionPolicy") == "Never" or _has_terminating_victims(pod, snapshot):
        return None
    best: tuple[Rank, str, list[Object]] | None = None
    for node in snapshot.nodes.values():
        if refusal(pod, node, snapshot) in UNRESOLVABLE:
            continue
        victims = _select_victims(pod, node, snapshot, budgets)
        if victims:
            rank = _rank(victims, budgets, name_of(node))
            if best is None or rank < best[0]:
                best = rank, name_of(node), victims
    return None if best is None else (best[1], best[2])


def _has_terminating_victims(pod: Object, snapshot: Snapshot) -> bool:
    """Whether pods of lower priority are terminating on the pod's nominated node."""
    nominated = pod.get("status", {}).get("nominatedNodeName")
    return nominated is not None and any(
        is_deleting(other) and _priority(other) < _priority(pod) for other in snapshot.pods_on(nominated)
    )


def _select_victims(pod: Object, node: Object, snapshot: Snapshot, budgets: list[Object]) -> list[Object]:
    """Pods of lower priority, without those that can be spared: pods that budgets protect first, then by priority."""
    lower = [other for other in snapshot.pods_on(name_of(node)) if _priority(other) < _priority(pod)]
    if not lower:
        return []
    for other in lower:
        snapshot.drop(_key(other))
    victims = []
    if not refusal(pod, node, snapshot):
        protected = {uid_of(other) for other in violations(lower, budgets)}
        rank = {_key(other): (uid_of(other) not in protected, -_priority(other), _start_time(other)) for other in lower}
        for other in sorted(lower, key=lambda other: (rank[_key(other)], name_of(other))):
            snapshot.put(other)
            if refusal(pod, node, snapshot):
                snapshot.drop(_key(other))
                victims.append(other)
    for other in lower:
        snapshot.put(other)
    return victims


def violations(pods: list[Object], budgets: list[Object]) -> list[Object]:
    """Pods whose removal, one after the other, violates a budget."""
    allowed = {uid_of(budget): budget["status"]["disruptionsAllowed"] for budget in budgets}
    violating = []
    for pod in pods:
        matching = [
            budget
            for budget in budgets
            if namespace_of(budget) == namespace_of(pod)
            and selector_matches(budget["spec"].get("selector"), labels_of(pod))
        ]
        if any(allowed[uid_of(budget)] <= 0 for budget in matching):
            violating.append(pod)
        for budget in matching:
            allowed[uid_of(budget)] -= 1
    return violating


def _rank(victims: list[Object], budgets: list[Object], node: str) -> Rank:
    """Order of candidates: fewest budget violations, lowest top priority, lowest sum, fewest victims."""
    priorities = [_priority(victim) for victim in victims]
    return len(violations(victims, budgets)), max(priorities), sum(priorities), len(victims), node


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def _start_time(pod: Object) -> str:
    return str(pod.get("status", {}).get("startTime") or "")


def _key(pod: Object) -> Key:
    return namespace_of(pod), name_of(pod)
