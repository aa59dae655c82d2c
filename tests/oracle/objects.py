"""Statements about one state of the world: nodes, Leases, workloads, volumes, budgets, identities."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime

from tests.oracle.effective import Off, is_effective, outages, ready
from tests.oracle.podsets import kind_and_name
from tests.oracle.question import Question, UndecidedError, condition, is_ready, node_names, seconds, text_matches
from tests.oracle.trace import Row, Trace, Value, all_of, any_of, combined, masked, no, sampled, steps_of
from tests.oracle.world import Obj, Version, get


def of_nodes(q: Question, names: list[str], value: Callable[[dict[str, Obj | None]], Value]) -> Trace:
    """A statement about some nodes, by what each is: its Node, or None."""
    if not names:
        raise UndecidedError("no nodes")
    now: dict[str, Obj | None] = dict.fromkeys(names)
    changes, uids = [], set()
    for v in q.world.sequence("nodes"):
        name = v.obj["metadata"]["name"]
        if name in now:
            uids.add(v.obj["metadata"].get("uid"))
            now[name] = None if v.deleted else v.obj
            changes.append((v.lo, v.hi, value(now), v.order))
    windows = [w for uid in uids for w in q.world.masks("nodes", uid=uid)]
    return masked(steps_of(changes), windows)


def node_condition(q: Question) -> Trace:
    names, p = node_names(q, q.params["node"]), q.params

    def holds(node: Obj | None) -> Value:
        c = condition(node, p.get("type", "Ready"))
        if c is None or c.get("status") != p["status"] or p.get("reason", c.get("reason")) != c.get("reason"):
            return False
        return bool(text_matches(p.get("message"), c.get("message")))

    return of_nodes(q, names, lambda now: q.each([holds(now[n]) for n in names]))


def node_taint(q: Question) -> Trace:
    names, p = node_names(q, q.params["node"]), q.params

    def holds(node: Obj | None) -> Value:
        found = [t for t in get(node, "spec", "taints") or () if t.get("key") == p["key"]]
        found = [t for t in found if p.get("effect") in (None, t.get("effect"))]
        found = [t for t in found if p.get("value") in (None, t.get("value") or "")]
        return bool(bool(found) == p.get("present", True))

    return of_nodes(q, names, lambda now: q.each([holds(now[n]) for n in names]))


def is_healthy(pod: Obj) -> bool:
    return is_ready(pod) and not get(pod, "metadata", "deletionTimestamp")


def nodes_ready(q: Question) -> Trace:
    p = q.params
    names = node_names(q, p.get("nodes") or "all")
    if p.get("not-ready-at-most") is not None:
        most = p["not-ready-at-most"]
        return of_nodes(q, names, lambda now: sum(not is_ready(n) for n in now.values()) <= most)
    return of_nodes(q, names, lambda now: q.each([is_ready(now[n]) for n in names]))


def stamp(text: str | None) -> float | None:
    """A time in an object, in seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp() if text else None


def lease_fresh(q: Question) -> Trace:
    names = node_names(q, q.params["node"])
    traces = [_lease(q, name) for name in names]
    return combined(traces, any_of if q.operator == "never" else all_of)


def _lease(q: Question, node: str) -> Trace:
    """Of one node: by the bounds of the renewal of each version that may be in force."""
    versions = [v for v in q.world.sequence("leases") if v.key[1] == f"kube-node-lease/{node}"]
    uids = {v.obj["metadata"].get("uid") for v in versions}
    windows = [w for uid in uids for w in q.world.masks("leases", uid=uid)] or [(-math.inf, math.inf)]
    wanted = q.params.get("fresh", True)
    ages: list[tuple[Version, float, float, float]] = []
    for i, v in enumerate(versions):
        renewed = get(v.obj, "spec", "renewTime")
        before = versions[i - 1] if i else None
        if before is not None and not before.deleted and get(before.obj, "spec", "renewTime") == renewed:
            lo, hi = ages[-1][1:3]
        else:
            lo, hi = v.lo, v.hi
            lost = [a for a, b in windows if a <= v.hi and v.lo <= b < math.inf]
            if before is None or lost:
                lo = min([lo, *lost]) if before is not None else -math.inf
                offset, stamped = q.case.offset(node), stamp(renewed)
                if offset and stamped:
                    lo, hi = max(lo, stamped - offset[1]), min(hi, stamped - offset[0])
                    lo = min(lo, hi)
        most = q.params.get("at-most")
        most = seconds(most) if most else float(get(v.obj, "spec", "leaseDurationSeconds") or 40)
        ages.append((v, lo, hi, most))

    def value(t: float) -> Value:
        found: set[Value] = set()
        for i, (v, lo, hi, most) in enumerate(ages):
            ends = ages[i + 1][0].hi if i + 1 < len(ages) else math.inf
            if v.lo <= t and (ends > t or v.hi == ends == t):
                fresh = False if v.deleted or t - hi > most else True if t - lo <= most else None
                found.add(fresh)
        known = found.pop() if len(found) == 1 else None
        return known if wanted else no(known)

    moments = [x for v, lo, hi, most in ages for x in (v.lo, v.hi, lo + most, hi + most)]
    moments += [math.nextafter(m, math.inf) for m in moments]
    return masked(sampled(moments, value), windows)


def workload_available(q: Question) -> Trace:
    p = q.params
    if p.get("owner"):
        kind, name = kind_and_name(p["owner"])
        p = {**p, "kinds": [kind], "names": [name]}
    kinds = p.get("kinds") or ["Deployment", "StatefulSet", "DaemonSet"]
    spare = str(p.get("unavailable-at-most", 0))
    space = q.case.space(p["namespace"])
    resources = ("daemonsets", "deployments", "statefulsets")
    of_kind = {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}
    used = tuple(r for r in resources if of_kind[r] in kinds)
    now: dict[tuple[str, str], Obj | None] = {}
    members: set[tuple[str, str]] = set()
    changes = []
    sequence = q.world.sequence(*used)
    for i, v in enumerate(sequence):
        name = v.obj["metadata"]["name"]
        if v.obj["metadata"].get("namespace") == space and (not p.get("names") or name in p["names"]):
            now[v.key] = None if v.deleted else v.obj
        if i == q.place - 1:
            members = {key for key, obj in now.items() if obj is not None}
        if i >= q.place - 1 and (v.key in members or i == q.place - 1):
            changes.append((v.lo, v.hi, q.each([_available(key[0], now[key], spare) for key in members]), v.order))
    if not members:
        raise UndecidedError("an empty set")
    trace = masked(steps_of(changes), q.world.masks(*used))
    return combined([trace, _on_machines(q, space)], all_of) if is_effective(q) else trace


def _on_machines(q: Question, space: str | None) -> Trace:
    """Unknown while a pod may be counted whose machine is off, or was and has not started it again.

    Its controller counts a pod for a moment longer than it is Ready.
    """
    offs: dict[str, list[Off]] = {}
    histories: dict[str, list[Version]] = {}
    for v in q.world.sequence("pods"):
        if v.obj["metadata"].get("namespace") == space:
            histories.setdefault(v.key[1], []).append(v)

    def value(t: float) -> Value:
        for versions in histories.values():
            for v, following in zip(versions, [*versions[1:], None], strict=True):
                in_force = v.lo <= t and (following is None or following.hi > t)
                if in_force and not v.deleted and ready(q.world, versions, v, t, offs) is not True:
                    return None
        return True

    moments = [m for versions in histories.values() for v in versions for m in (v.lo, v.hi)]
    value(q.world.start)
    for node in {get(v.obj, "spec", "nodeName") for versions in histories.values() for v in versions} - {None}:
        offs.setdefault(node, outages(q.world, node))
    moments += [m for each in offs.values() for o in each for m in (o.since, o.lo, o.hi, o.back)]
    return masked(sampled(moments, value), q.world.masks("pods"))


def _available(kind: str, obj: Obj | None, spare: str) -> Value:
    if obj is None:
        return False
    status = obj.get("status") or {}
    if (status.get("observedGeneration") or 0) < (get(obj, "metadata", "generation") or 0):
        return False
    if kind == "daemonsets":
        have, want = status.get("numberAvailable") or 0, status.get("desiredNumberScheduled") or 0
    else:
        have = status.get("readyReplicas" if kind == "statefulsets" else "availableReplicas") or 0
        replicas = get(obj, "spec", "replicas")
        want = 1 if replicas is None else replicas
    less = want * int(spare[:-1]) // 100 if spare.endswith("%") else int(spare)
    return bool(have >= want - less)


def volume_attached(q: Question) -> Trace:
    p = q.params
    names = q.case.nodes(p.get("node"))
    wanted = p.get("attached", True)
    volumes = {p["volume"]} if p.get("volume") else None
    now: dict[tuple[str, str], bool] = {}
    claims: dict[str, str] = {}
    members: set[tuple[str, str]] = set()
    changes: list[Row] = []
    claim = p.get("claim")
    if claim:
        space, _, name = claim.partition("/")
        claim = f"{q.case.space(space)}/{name}"
    kinds = ("persistentvolumeclaims", "volumeattachments") if claim else ("volumeattachments",)
    for i, v in enumerate(q.world.sequence(*kinds)):
        if v.kind == "persistentvolumeclaims":
            meta = v.obj["metadata"]
            claims[f"{meta.get('namespace')}/{meta['name']}"] = get(v.obj, "spec", "volumeName") or ""
        else:
            spec = v.obj.get("spec") or {}
            volume = get(spec, "source", "persistentVolumeName")
            fits = not names or spec.get("nodeName") in names
            fits &= volumes is None or volume in volumes
            fits &= claim is None or claims.get(claim) == volume
            if fits or v.key in now:
                now[v.key] = not v.deleted and get(v.obj, "status", "attached") is True
        if i == q.place - 1:
            members = {key for key, attached in now.items() if attached}
        if i >= q.place - 1:
            value = any(now.values()) if wanted else q.each([not now[key] for key in members])
            changes.append((v.lo, v.hi, value, v.order))
    if not wanted and not members:
        raise UndecidedError("an empty set")
    if p.get("node") == "all" or not changes:
        if "volumeattachments" not in q.world.listed:
            raise UndecidedError("no list")
        changes = changes or [(-math.inf, -math.inf, False, None)]
    return masked(steps_of(changes), q.world.masks(*kinds))
