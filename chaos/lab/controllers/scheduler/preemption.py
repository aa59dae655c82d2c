"""Whom the scheduler preempts so that a pod of higher priority fits: pure. kube-scheduler's DefaultPreemption."""

from __future__ import annotations

from chaos.lab.controllers.scheduler.filters import UNRESOLVABLE, refusal
from chaos.lab.controllers.scheduler.snapshot import Snapshot
from chaos.lab.objects.accessors import (
    Object,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    selector_matches,
    uid_of,
)

Rank = tuple[int, int, int, int, str]


def select_candidate(pod: Object, snapshot: Snapshot, budgets: list[Object]) -> tuple[str, list[Object]] | None:
    """The node and its victims, None if preemption cannot help or is under way already."""
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
    """Whether pods of lower priority terminate on the node that it was nominated for."""
    nominated = pod.get("status", {}).get("nominatedNodeName")
    return nominated is not None and any(
        is_deleting(other) and _priority(other) < _priority(pod) for other in snapshot.pods_on(nominated)
    )


def _select_victims(pod: Object, node: Object, snapshot: Snapshot, budgets: list[Object]) -> list[Object]:
    """Everything of lower priority, less what can be spared: those that budgets protect first, then by priority."""
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


def _start_time(pod: Object) -> str:
    return str(pod.get("status", {}).get("startTime") or "")


def _key(pod: Object) -> tuple[str, str]:
    return namespace_of(pod), name_of(pod)
