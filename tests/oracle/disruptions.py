"""Statements about what a state may not be: budgets that are broken, two pods of one identity."""

from __future__ import annotations

import math

from tests.oracle.objects import is_healthy
from tests.oracle.podsets import controller
from tests.oracle.question import Question, UndecidedError, condition, is_ready
from tests.oracle.trace import Row, Trace, Value, all_of, masked, sampled, steps_of
from tests.oracle.world import Obj, Version, get


def selects(selector: Obj | None, labels: Obj) -> bool:
    """A label selector; null selects nothing."""
    if selector is None:
        return False
    if any(labels.get(k) != v for k, v in (selector.get("matchLabels") or {}).items()):
        return False
    for r in selector.get("matchExpressions") or ():
        has, value, op = r["key"] in labels, labels.get(r["key"]), r["operator"]
        ok = {"In": has and value in (r.get("values") or ()), "NotIn": value not in (r.get("values") or ())}
        ok |= {"Exists": has, "DoesNotExist": not has}
        if not ok[op]:
            return False
    return True


CAUSES = {"EvictionByEvictionAPI": "eviction", "PreemptionByScheduler": "preemption"}
INVOLUNTARY = {"DeletionByTaintManager", "TerminationByKubelet", "DeletionByPodGC"}


def budget_respected(q: Question) -> Trace:
    p = q.params
    space, by = q.case.space(p["namespace"]), p.get("by") or ["eviction", "deletion"]
    budgets: dict[tuple[str, str], Obj] = {}
    pods: dict[tuple[str, str], Obj] = {}
    broken: set[tuple[str, str]] = set()
    unknown = False
    changes: list[Row] = []
    seen = False
    for v in q.world.sequence("poddisruptionbudgets", "pods"):
        meta = v.obj["metadata"]
        if meta.get("namespace") != space:
            continue
        if v.kind == "poddisruptionbudgets":
            if p.get("name") in (None, meta["name"]):
                seen = True
                budgets.pop(v.key, None)
                if not v.deleted:
                    budgets[v.key] = v.obj
        else:
            before = pods.pop(v.key, None)
            if not v.deleted:
                pods[v.key] = v.obj
            if not v.listed and before is not None and is_healthy(before) and (v.deleted or not is_healthy(v.obj)):
                cause = _cause(v)
                mine = {k for k, b in budgets.items() if selects(get(b, "spec", "selector"), meta.get("labels") or {})}
                too_few = {k for k in mine if not _left(budgets[k], pods, space)}
                unknown |= cause is None and bool(too_few)
                broken |= too_few if cause in by else set()
        broken = {key for key in broken if key in budgets and not _left(budgets[key], pods, space)}
        changes.append((v.lo, v.hi, None if unknown else not broken, v.order))
    if not seen:
        raise UndecidedError("no budget")
    return masked(steps_of(changes), q.world.masks("poddisruptionbudgets", "pods"))


def _left(budget: Obj, pods: dict[tuple[str, str], Obj], space: str | None) -> bool:
    selector = get(budget, "spec", "selector")
    healthy = sum(is_healthy(o) and selects(selector, o["metadata"].get("labels") or {}) for o in pods.values())
    return healthy >= (get(budget, "status", "desiredHealthy") or 0)


def _cause(v: Version) -> str | None:
    """Why a healthy pod was lost; None: it is unknown."""
    c = condition(v.obj, "DisruptionTarget")
    reason = c.get("reason") if c and c.get("status") == "True" else None
    if reason in CAUSES:
        return CAUSES[reason]
    if reason in INVOLUNTARY:
        return "involuntary"
    if v.deduced:
        return None
    if v.deleted or get(v.obj, "metadata", "deletionTimestamp"):
        return "deletion"
    return "failure"


def at_most_one(q: Question) -> Trace:
    """Two pods of a name: both run for certain (their Ready nodes say so), or at most one can."""
    space, name = q.case.space(q.params["namespace"]), q.params.get("name")
    lives: dict[str, list[tuple[float, float, float, float]]] = {}
    pods: dict[str, list[Version]] = {}
    for v in q.world.sequence("nodes", "pods"):
        owner = controller(v.obj)
        mine = v.kind == "pods" and v.obj["metadata"].get("namespace") == space and owner.get("kind") == "StatefulSet"
        if mine and name in (None, owner.get("name")):
            pods.setdefault(v.key[1], []).append(v)
    if not pods:
        raise UndecidedError("no pods of a StatefulSet")
    for versions in pods.values():
        lives.setdefault(versions[0].obj["metadata"]["name"], []).append(_life(q, versions))

    def value(t: float) -> Value:
        found: list[Value] = []
        for each in lives.values():
            certain = sum(a <= t < b for _, a, b, _ in each)
            possible = sum(a <= t < b for a, _, _, b in each)
            found.append(False if certain > 1 else True if possible <= 1 else None)
        values = {all_of(found), q.each(found)}
        return values.pop() if len(values) == 1 else None

    moments = [x for each in lives.values() for life in each for x in life]
    return masked(sampled([q.world.start, *moments], value), q.world.masks("pods"))


def _life(q: Question, versions: list[Version]) -> tuple[float, float, float, float]:
    """May run from, runs from, runs until, may run until."""
    running = [v for v in versions if not v.deleted and _runs(v.obj)]
    begin = running[0] if running else None
    node = get(versions[-1].obj, "spec", "nodeName")
    ready_until = math.inf
    for v in q.world.sequence("nodes"):
        unready = v.obj["metadata"]["name"] == node and (v.deleted or not is_ready(v.obj))
        if unready and begin is not None and v.hi >= begin.lo:
            ready_until = min(ready_until, v.lo)
    after = [v for v in versions if running and v.order > running[-1].order]
    certain_end = min(after[0].lo if after else math.inf, ready_until)
    uid, ended = versions[0].obj["metadata"].get("uid"), math.inf
    for entry in q.world.entries:
        if entry["kind"] == "host" and entry.get("node") == node and begin is not None and entry["t"] > begin.hi:
            listed = get(entry["object"], "running") if entry["type"] == "containers" else None
            begun = entry.get("since") or entry["t"] - 0.5
            if listed is not None and begun > begin.hi and all(c.get("uid") != uid for c in listed):
                ended = min(ended, entry["t"])
    never_ran = not running and versions[-1].deleted and not node
    if never_ran:
        return math.inf, math.inf, math.inf, math.inf
    certain = begin.hi if begin else math.inf
    return versions[0].lo, certain, max(certain, certain_end) if begin else math.inf, ended


def _runs(pod: Obj) -> bool:
    return any(get(c, "state", "running") is not None for c in get(pod, "status", "containerStatuses") or ())
