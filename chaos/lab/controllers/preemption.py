"""Whom the scheduler preempts so that a pod of higher priority fits: pure. kube-scheduler's DefaultPreemption."""

from __future__ import annotations

from chaos.lab.controllers.scheduling import UNRESOLVABLE, Snapshot, refusal
from chaos.lab.objects import (
    Object,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    selector_matches,
    uid_of,
)

Rank = tuple[int, int, int, int, str]


def choose(pod: Object, snapshot: Snapshot, budgets: list[Object]) -> tuple[str, list[Object]] | None:
    """The node and its victims, None if preemption cannot help or is under way already."""
    if pod["spec"].get("preemptionPolicy") == "Never" or _waits(pod, snapshot):
        return None
    best: tuple[Rank, str, list[Object]] | None = None
    for node in snapshot.nodes:
        if refusal(pod, node, snapshot) in UNRESOLVABLE:
            continue
        victims = _victims(pod, node, snapshot, budgets)
        if victims:
            rank = _rank(victims, budgets, name_of(node))
            if best is None or rank < best[0]:
                best = rank, name_of(node), victims
    return None if best is None else (best[1], best[2])


def _waits(pod: Object, snapshot: Snapshot) -> bool:
    """Whether pods of lower priority terminate on the node that it was nominated for."""
    nominated = pod.get("status", {}).get("nominatedNodeName")
    return bool(nominated) and any(
        node_of(other) == nominated and is_deleting(other) and _priority(other) < _priority(pod)
        for other in snapshot.pods
    )


def _victims(pod: Object, node: Object, snapshot: Snapshot, budgets: list[Object]) -> list[Object]:
    """Everything of lower priority, less what can be spared: those that budgets protect first, then by priority."""
    lower = [other for other in snapshot.pods if node_of(other) == name_of(node) and _priority(other) < _priority(pod)]
    kept = [other for other in snapshot.pods if other not in lower]
    if refusal(pod, node, Snapshot(snapshot.nodes, list(kept))):
        return []
    protected = {uid_of(other) for other in violations(lower, budgets)}
    lower.sort(key=lambda other: (uid_of(other) not in protected, -_priority(other), _started(other), name_of(other)))
    victims = []
    for other in lower:
        if refusal(pod, node, Snapshot(snapshot.nodes, [*kept, other])):
            victims.append(other)
        else:
            kept.append(other)
    return victims


def violations(pods: list[Object], budgets: list[Object]) -> list[Object]:
    """The pods whose budgets allow no more disruptions, taken in order."""
    left = {uid_of(budget): budget["status"]["disruptionsAllowed"] for budget in budgets}
    found = []
    for pod in pods:
        mine = [
            budget
            for budget in budgets
            if namespace_of(budget) == namespace_of(pod)
            and selector_matches(budget["spec"].get("selector"), labels_of(pod))
        ]
        if any(left[uid_of(budget)] <= 0 for budget in mine):
            found.append(pod)
        for budget in mine:
            left[uid_of(budget)] -= 1
    return found


def _rank(victims: list[Object], budgets: list[Object], node: str) -> Rank:
    """Fewest violated budgets, lowest highest priority, lowest sum, fewest victims."""
    priorities = [_priority(victim) for victim in victims]
    return len(violations(victims, budgets)), max(priorities), sum(priorities), len(victims), node


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def _started(pod: Object) -> str:
    return str(pod.get("status", {}).get("startTime") or "")
