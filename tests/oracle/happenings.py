"""Statements that become true by something that happens: Events, starts, refusals, reboots."""

from __future__ import annotations

import math

from tests.oracle.objects import stamp
from tests.oracle.question import Question, UndecidedError, node_names, text_matches
from tests.oracle.trace import Row, Trace, Value, all_of, any_of, combined, masked, sampled, steps_of
from tests.oracle.world import Obj, Version, get


def event(q: Question) -> Trace:
    """The number of Events since ``a``, of each node by itself."""
    named = q.case.nodes(q.params.get("node"))
    names: list[str | None] = [None] if named is None else list(node_names(q, q.params["node"]))
    traces = [_events(q, name) for name in names]
    windows = q.world.masks("events")
    return masked(combined(traces, any_of if q.operator == "never" else all_of), windows)


def _events(q: Question, node: str | None) -> Trace:
    least, most = q.params.get("least", 1), q.params.get("most")
    most = math.inf if most is None else most
    counts: dict[tuple[str, str], int] = {}
    low = high = 0
    rows: list[Row] = [(-math.inf, -math.inf, least <= 0, None)]
    for v in q.world.sequence("events"):
        if v.deleted:
            counts.pop(v.key, None)
            continue
        count = v.obj.get("count") or 1
        known = counts.get(v.key)
        counts[v.key] = count
        grown = 1 if known is None else count - known
        if v.listed or grown <= 0 or not _fits(q, v.obj, node):
            continue
        if v.hi < q.a:
            continue
        low += grown if v.lo >= q.a else 0
        high += grown
        found = {least <= n <= most for n in range(low, min(high, low + 60) + 1)}
        lo = max(v.lo, q.a)
        rows.append((lo, max(lo, v.hi), found.pop() if len(found) == 1 else None, None))
    return steps_of(rows)


def _fits(q: Question, obj: Obj, node: str | None) -> bool:
    p, about = q.params, obj.get("involvedObject") or {}
    if node is not None and (about.get("kind"), about.get("name")) != ("Node", node):
        return False
    if p.get("namespace") and about.get("namespace") != q.case.space(p["namespace"]):
        return False
    component = {obj.get("reportingComponent"), get(obj, "source", "component")}
    if p.get("component") and p["component"] not in component:
        return False
    same = all(p.get(name) in (None, about.get(name)) for name in ("kind", "name"))
    same &= all(p.get(name) in (None, obj.get(name)) for name in ("reason", "type"))
    return same and text_matches(p.get("message"), obj.get("message"))


def pods_started(q: Question) -> Trace:
    names = set(node_names(q, q.params["node"]))
    return masked(combined([_starts(q, name) for name in sorted(names)], any_of), q.world.masks("pods"))


def _starts(q: Question, node: str) -> Trace:
    rows: list[Row] = []
    for lo, hi in starts(q, node):
        if hi < q.a:
            continue
        rows.append((max(lo, q.a), max(hi, q.a), True if lo >= q.a else None, None))
    return _once(rows)


def _once(rows: list[Row]) -> Trace:
    """False until something happened; what may have happened makes it unknown."""
    certain = min((hi for _, hi, v, _ in rows if v), default=math.inf)
    moments = [m for lo, hi, _, _ in rows for m in (lo, hi)]

    def value(t: float) -> Value:
        if t >= certain:
            return True
        return None if any(lo <= t for lo, _, _, _ in rows) else False

    single = len(rows) == 1 and rows[0][2]
    if single:
        return steps_of([(-math.inf, -math.inf, False, None), (rows[0][0], rows[0][1], True, None)])
    return sampled([-1e9, *moments], value) if moments else steps_of([(-math.inf, -math.inf, False, None)])


def starts(q: Question, node: str) -> list[tuple[float, float]]:
    """Bounds of the starts of containers on a node, after the first list."""
    seen: set[tuple[str, str, str, int]] = set()
    ids: set[tuple[str, str, str]] = set()
    previous: dict[str, Version] = {}
    found = []
    offset = q.case.offset(node)
    for v in q.world.sequence("pods"):
        if get(v.obj, "spec", "nodeName") != node:
            previous[v.key[1]] = v
            continue
        uid, before = v.key[1], previous.get(v.key[1])
        previous[uid] = v
        statuses = [(s, False) for s in get(v.obj, "status", "containerStatuses") or ()]
        statuses += [(s, True) for s in get(v.obj, "status", "initContainerStatuses") or ()]
        for s, _ in statuses:
            name, ident, count = s["name"], s.get("containerID") or "", s.get("restartCount") or 0
            if not ident or (uid, name, ident, count) in seen:
                continue
            seen.add((uid, name, ident, count))
            again = (uid, name, ident) in ids
            ids.add((uid, name, ident))
            if v.listed or again:
                continue
            lo = -math.inf if before is None else before.lo - 15
            if before is not None and before.listed:
                lo = q.world.listed.get("pods", q.world.start) - 15
            stamped = stamp(get(s, "state", "running", "startedAt") or get(s, "state", "terminated", "startedAt"))
            born = next(w for w in q.world.sequence("pods") if w.key == v.key)
            lo, hi = max(lo, born.lo), v.hi
            if offset and stamped:
                lo, hi = max(lo, stamped - offset[1]), min(hi, stamped + 1 - offset[0])
            found.append((min(lo, hi), hi))
    return found


def eviction_refused(q: Question) -> Trace:
    """Answers of steps that began at ``a`` or later."""
    p, rows = q.params, list[Row]()
    nodes, space = q.case.nodes(p.get("node")), q.case.space(p.get("namespace"))
    for step in q.world.steps.values():
        if step.action not in ("drain", "evict-pod") or not step.sent:
            continue
        begin = q.case.begin(step.name)
        if begin.hi < q.a:
            continue
        if begin.lo < q.a < begin.hi or len(step.returned) < len(step.sent):
            raise UndecidedError("a step that may have begun before, or did not return")
        for answer in step.answers:
            if "pods" not in answer:
                raise UndecidedError("no responses")
            if nodes and answer["node"] not in nodes:
                continue
            for pod in answer["pods"]:
                if space in (None, pod["pod"].partition("/")[0]):
                    rows += _refusals(p, pod, step.sent[0], answer["t"])
    return _once(rows)


def _refusals(p: Obj, pod: Obj, sent: float, returned: float) -> list[Row]:
    status = p.get("status", 429)
    rows: list[Row] = []
    for refusal in pod.get("refusals") or ():
        code = refusal.get("status", 429)
        if code == status and text_matches(p.get("message"), refusal.get("message")):
            rows.append((sent, refusal.get("t") or returned, True, None))
    if pod.get("status") == status and not rows and p.get("message") is None:
        rows.append((sent, returned, True, None))
    return rows


IDENTITIES = ("pid1-start", "boot-id")


def node_rebooted(q: Question) -> Trace:
    """Another boot identity than at ``a``; unknown between the last reading of the old one and the first of another."""
    traces = [_rebooted(q, name) for name in node_names(q, q.params["node"])]
    return combined(traces, any_of if q.operator == "never" else all_of)


def _rebooted(q: Question, node: str) -> Trace:
    certain, same = math.inf, -math.inf
    for kind in (*IDENTITIES, "node"):
        readings = _identities(q, node, kind)
        before = [r for r in readings if r[1] <= q.a]
        after = [r for r in readings if r[0] >= q.a]
        if not after:
            continue
        shared = kind != "pid1-start" and _shared(q, kind, node)
        if before and before[-1][2] == after[0][2]:
            first = after[0][2]
            if not shared:
                alike = [r for r in after if r[2] == first]
                other = [r for r in after if r[2] != first]
                stays = [r for r in alike if not other or r[1] < other[0][0]]
                same = max([same, *(r[0] for r in stays)])
            certain = min([certain, *(r[1] for r in after if r[2] != first)])
        else:
            following = [r for r in after if r[2] != after[0][2]]
            certain = min([certain, *(r[1] for r in following)])
            certain = min(certain, _by_start(q, node, kind, after))

    def value(t: float) -> Value:
        return True if t >= certain else False if t <= same else None

    return sampled([q.a - 1e6, same, math.nextafter(same, math.inf), certain], value)


def _by_start(q: Question, node: str, kind: str, after: list[tuple[float, float, object]]) -> float:
    """When the first reading of a start of PID 1 after ``a`` was made, by a clock that was measured."""
    offset = q.case.offset(node)
    if kind != "pid1-start" or offset is None or not isinstance(after[0][2], int | float):
        return math.inf
    return after[0][1] if after[0][2] - offset[1] - 1 > q.a else math.inf


def _identities(q: Question, node: str, kind: str) -> list[tuple[float, float, object]]:
    if kind == "node":
        versions = [v for v in q.world.sequence("nodes") if v.obj["metadata"]["name"] == node and not v.deleted]
        pairs = [(max(v.lo, 0.0), v.hi, get(v.obj, "status", "nodeInfo", "bootID")) for v in versions]
        # a version proves the identity only when its kubelet wrote it
        changed = [r for i, r in enumerate(pairs) if i == 0 or r[2] != pairs[i - 1][2]]
        return changed if len(changed) > 1 else []
    read = [e for e in q.world.entries if e["kind"] == "host" and e["type"] == kind and e.get("node") == node]
    return [(e.get("since") or e["t"] - 0.5, e["t"], e["object"]) for e in read if e["object"] is not None]


def _shared(q: Question, kind: str, node: str) -> bool:
    """Whether nodes share a boot ID, as containers on one kernel do."""
    ids: dict[object, set[str]] = {}
    for v in q.world.sequence("nodes"):
        ids.setdefault(get(v.obj, "status", "nodeInfo", "bootID"), set()).add(v.obj["metadata"]["name"])
    for e in q.world.entries:
        if kind == "boot-id" and e["kind"] == "host" and e["type"] == kind:
            ids.setdefault(e["object"], set()).add(e.get("node", ""))
    return any(node in names and len(names) > 1 for names in ids.values()) or not ids
