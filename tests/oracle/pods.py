"""``pods``, its aliases, and the sets that other assertions form of pods."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from tests.oracle.effective import Off, is_effective, outages, ready
from tests.oracle.question import Question, UndecidedError, condition, seconds, text_matches
from tests.oracle.trace import Row, Trace, Value, all_of, any_of, masked, no, sampled, steps_of
from tests.oracle.world import Obj, Version, get

PRESETS: dict[str, Obj] = {
    "pods-disrupted": {"each": {"disruption": "any"}},
    "pods-evicted": {"each": {"disruption": "EvictionByEvictionAPI", "deleting": True}},
    "pods-rejected": {"count": {"phase": "Failed", "reason": "NodeShutdown", "least": 1}},
    "pods-rescheduled": {"each": {"replaced": {"node": "other"}}},
    "pods-stuck": {"each": {"deleting": True, "gone": False}},
}
MOST_STATES = 6
QUESTIONS = ("each", "any", "none", "count", "rate", "order")
NO_FILTER = {"least", "most", "at-most", "at-least", "over", "per", "by", "descending", "replaced"}


def preset(name: str, params: Obj) -> Obj:
    """The parameters of ``pods`` for an alias: parts of its question, or another one with the same filter."""
    if name not in PRESETS:
        return params
    (question, base), *_ = PRESETS[name].items()
    own = next((k for k in QUESTIONS if k in params), question)
    kept = {k: v for k, v in base.items() if own == "count" or k not in ("least", "most")}
    return {**params, own: {**kept, **(params.get(own) or {})}}


@dataclass(slots=True)
class Pod:
    """A pod as its version in force has it, and what it keeps of earlier ones."""

    version: Version
    ended: float = math.inf  # order of the version with which it ended
    created: float = -math.inf  # order of the first version; -inf: of the first list
    finished_as: str | None = None  # the reason of the disruption with which it finished
    finished: bool = False
    unsure: bool = False  # it was finished before it was seen
    effective: Value = True  # its machine runs, and has started it again if it was off
    cache: dict[str, Value] = field(default_factory=dict)

    @property
    def obj(self) -> Obj:
        return self.version.obj

    @property
    def gone(self) -> bool:
        return self.version.deleted

    @property
    def node(self) -> str | None:
        return get(self.obj, "spec", "nodeName")


def controller(obj: Obj) -> Obj:
    return next((o for o in get(obj, "metadata", "ownerReferences") or () if o.get("controller")), {})


def is_finished(obj: Obj) -> bool:
    return get(obj, "status", "phase") in ("Succeeded", "Failed")


def is_deleting(obj: Obj) -> bool:
    return bool(get(obj, "metadata", "deletionTimestamp"))


def disruption(obj: Obj) -> str | None:
    c = condition(obj, "DisruptionTarget")
    return (c.get("reason") or "") if c and c.get("status") == "True" else None


def updated(before: Pod | None, v: Version) -> Pod:
    """The pod with its next version."""
    pod = Pod(v, created=-math.inf if v.listed else v.order)
    if before is not None:
        pod.created, pod.ended = before.created, before.ended
        pod.finished, pod.finished_as, pod.unsure = before.finished, before.finished_as, before.unsure
    if pod.ended == math.inf and (v.deleted or is_finished(v.obj) or is_deleting(v.obj)):
        pod.ended = v.order
    if is_finished(v.obj) and not pod.finished:
        pod.finished, pod.finished_as, pod.unsure = True, disruption(v.obj), before is None
    return pod


def selected(q: Question, obj: Obj) -> bool:
    """Whether a pod that exists belongs to what is asked about."""
    p, nodes = q.params, q.case.nodes(q.params.get("node"))
    if nodes and get(obj, "spec", "nodeName") not in nodes:
        return False
    if nodes == [] and not get(obj, "spec", "nodeName"):
        return False
    meta, owner = obj["metadata"], controller(obj)
    if p.get("namespace") and meta.get("namespace") != q.case.space(p["namespace"]):
        return False
    if any((meta.get("labels") or {}).get(k) != v for k, v in (p.get("labels") or {}).items()):
        return False
    if p.get("owner") and (owner.get("kind"), owner.get("name")) != (p["owner"]["kind"], p["owner"]["name"]):
        return False
    left_out = {
        "daemonset": owner.get("kind") == "DaemonSet",
        "finished": is_finished(obj),
        "static": bool(get(meta, "annotations", "kubernetes.io/config.mirror")),
        "terminating": is_deleting(obj),
    }
    return not any(left_out[name] for name in p.get("except") or ())


def matches(pod: Pod, wanted: Obj) -> Value:
    """The conditions of a filter but ``replaced``, by the version in force."""
    cached = pod.cache.get("match", pod)
    if cached is not pod:
        return cached  # type: ignore[return-value]
    value = all_of(_condition(pod, k, w) for k, w in wanted.items() if k not in NO_FILTER)
    pod.cache["match"] = value
    return value


def _condition(pod: Pod, name: str, wanted: object) -> Value:  # noqa: PLR0911
    obj = pod.obj
    if name == "gone":
        return pod.gone == wanted
    if name == "deleting":
        return (pod.gone or is_deleting(obj)) == wanted
    if name == "ready":
        value = all_of([not pod.gone and is_ready(obj), pod.effective])
        return value if wanted else no(value)
    if pod.version.deduced:
        return None
    if name == "phase":
        return get(obj, "status", "phase") in (wanted if isinstance(wanted, list) else [wanted])
    if name == "reason":
        return bool(get(obj, "status", "reason") == wanted)
    if name == "message":
        return text_matches(str(wanted), get(obj, "status", "message"))
    if name == "disruption":
        if pod.finished and pod.unsure and pod.finished_as != disruption(obj):
            return None
        reason = pod.finished_as if pod.finished else disruption(obj)
        return {"any": reason is not None, "none": reason is None}.get(str(wanted), reason == wanted)
    statuses = get(obj, "status", "containerStatuses") or []
    if name == "scheduled":
        c = condition(obj, "PodScheduled")
        both = {bool(pod.node), c is not None and c.get("status") == "True"}
        return (both == {True}) == wanted if len(both) == 1 else None
    if name == "waiting":
        return _same([get(s, "state", "waiting", "reason") == wanted for s in statuses], any)
    if name == "exit-code":
        return _same([get(s, "state", "terminated", "exitCode") == wanted for s in statuses], any)
    restarts = sum(s.get("restartCount") or 0 for s in statuses)
    if name == "restarts-at-least":
        return bool(restarts >= wanted)  # type: ignore[operator]
    if name == "restarts-at-most":
        return bool(restarts <= wanted)  # type: ignore[operator]
    raise UndecidedError(f"pods {name}")


def _same(values: list[bool], _: Callable[[list[bool]], bool]) -> Value:
    """What one container says; the page says nothing of several that differ."""
    return values[0] if len(set(values)) == 1 else None if values else False


def pods(q: Question) -> Trace:
    """The one question that ``pods`` asks."""
    name = next((k for k in QUESTIONS if k in q.params), "")
    wanted = q.params.get(name)
    if wanted is None:
        raise UndecidedError("no question")
    about_machines = {"ready", "replaced"} & wanted.keys()
    if about_machines and is_effective(q):
        return _effective(q, name, wanted)
    if name == "rate":
        return _rate(q, wanted)
    if name == "order":
        return _order(q, wanted)
    if name == "count" and "at" not in q.params:
        return _count_now(q, wanted)
    return _of_set(q, name, wanted)


def _bounds(number: int, wanted: Obj) -> bool:
    return wanted.get("least", 0) <= number <= wanted.get("most", math.inf)


def _count(values: list[Value], wanted: Obj) -> Value:
    """Whether the number of true ones is within bounds; ``least`` is 1 if neither is given."""
    if "least" not in wanted and "most" not in wanted:
        raise UndecidedError("count without bounds")
    low = sum(v is True for v in values)
    found = {_bounds(n, wanted) for n in range(low, low + sum(v is None for v in values) + 1)}
    return found.pop() if len(found) == 1 else None


def _count_now(q: Question, wanted: Obj) -> Trace:
    """The pods that exist and match the selection at each moment."""
    now: dict[str, Pod] = {}
    inside: set[str] = set()
    rows: list[Row] = []
    for v in q.world.sequence("pods"):
        uid = v.key[1]
        now[uid] = updated(now.get(uid), v)
        was = uid in inside
        inside.discard(uid)
        if not v.deleted and selected(q, v.obj):
            inside.add(uid)
        if v.listed or was or uid in inside:
            rows.append((v.lo, v.hi, _count([matches(now[u], wanted) for u in inside], wanted), v.order))
    return masked(steps_of(rows), q.world.masks("pods"))


def _effective(q: Question, name: str, wanted: Obj) -> Trace:
    """As reported, and by the machines: at each moment of all states that there may be."""
    if name in ("rate", "order"):
        raise UndecidedError("a rate or order of machines")
    dynamic = name == "count" and "at" not in q.params
    then, members = ({}, set()) if dynamic else members_at(q)
    zones = _zones(q) if (wanted.get("replaced") or {}).get("zone") else {}
    sequence, offs = q.world.sequence("pods"), dict[str, list[Off]]()
    histories: dict[str, list[Version]] = {}
    for v in sequence:
        histories.setdefault(v.key[1], []).append(v)
        if node := get(v.obj, "spec", "nodeName"):
            offs[node] = offs.get(node) or outages(q.world, node)

    @cache
    def states(place: int) -> dict[str, Pod]:
        now: dict[str, Pod] = {}
        for v in sequence[:place]:
            now[v.key[1]] = updated(now.get(v.key[1]), v)
        return now

    def value(t: float) -> Value:
        least, most = sum(v.hi <= t or v.listed for v in sequence), sum(v.lo <= t for v in sequence)
        values: set[Value] = set()
        for place in range(least, most + 1) if most - least < MOST_STATES else ():
            now = {u: replace(p, cache={}) for u, p in states(place).items()}
            for uid, pod in now.items():
                pod.effective = ready(q.world, histories[uid], pod.version, t, offs)
            mine = {u for u, p in now.items() if not p.gone and selected(q, p.obj)} if dynamic else members
            values.add(_value(q, name, wanted, now, mine, set(then), zones))
        return values.pop() if len(values) == 1 else None

    moments = [m for v in sequence for m in (v.lo, v.hi)] + [q.world.start]
    moments += [m for each in offs.values() for o in each for m in (o.since, o.lo, o.hi, o.back)]
    return masked(sampled(moments, value), q.world.masks("pods"))


def members_at(q: Question) -> tuple[dict[str, Pod], set[str]]:
    """All pods after ``place`` versions, and those of the set."""
    now: dict[str, Pod] = {}
    for v in q.world.sequence("pods")[: q.place]:
        now[v.key[1]] = updated(now.get(v.key[1]), v)
    return now, {uid for uid, pod in now.items() if not pod.gone and selected(q, pod.obj)}


def _of_set(q: Question, name: str, wanted: Obj) -> Trace:
    """each, any, none, or a count with ``at``: of the pods that were in the set, wherever they go later."""
    then, members = members_at(q)
    if not members and name != "count":
        raise UndecidedError("an empty set")
    replaced = wanted.get("replaced")
    zones = _zones(q) if replaced and replaced.get("zone") else {}
    at_first, now = set(then), dict[str, Pod]()

    def value() -> Value:
        return _value(q, name, wanted, now, members, at_first, zones)

    rows, listed = list[Row](), sum(v.listed for v in q.world.sequence("pods"))
    for i, v in enumerate(q.world.sequence("pods")):
        uid = v.key[1]
        now[uid] = updated(now.get(uid), v)
        if uid in members or replaced is not None or i + 1 == listed:
            rows.append((v.lo, v.hi, value() if i + 1 >= listed else None, v.order))
    uids = members if replaced is None else None
    windows = q.world.masks("pods") if uids is None else [w for uid in uids for w in q.world.masks("pods", uid=uid)]
    return masked(steps_of(rows), sorted(set(windows)) or q.world.masks("pods"))


def _value(
    q: Question,
    name: str,
    wanted: Obj,
    now: dict[str, Pod],
    members: set[str],
    at_first: set[str],
    zones: dict[str, str],
) -> Value:
    """What the question says of a set in one state; a pod that was not created yet is unknown."""
    values: list[Value] = []
    for uid in members:
        found = matches(now[uid], wanted) if uid in now else None
        if "replaced" in wanted and found is not False and uid in now:
            found = all_of([found, _replaced(now, at_first, members, uid, wanted["replaced"], zones)])
        values.append(found)
    if name == "count":
        return _count(values, wanted)
    if name == "each" and q.operator != "never":
        return all_of(values)
    return any_of(values) if name in ("each", "any") else no(any_of(values))


def _zones(q: Question) -> dict[str, str]:
    """The zone of each node. Raises UndecidedError if one changed."""
    zones: dict[str, str] = {}
    for v in q.world.sequence("nodes"):
        meta = v.obj["metadata"]
        zone = (meta.get("labels") or {}).get("topology.kubernetes.io/zone") or ""
        if zones.setdefault(meta["name"], zone) != zone:
            raise UndecidedError("a node changed its zone")
    return zones


def _replaced(
    now: dict[str, Pod], at_first: set[str], members: set[str], uid: str, wanted: Obj, zones: dict[str, str]
) -> Value:
    """Whether a pod has ended and has a replacement for itself; of those that ended the first one chooses first."""
    pod, owner = now[uid], controller(now[uid].obj)
    if pod.ended == math.inf or not owner:
        return False
    new = [p for u, p in now.items() if u not in at_first and controller(p.obj).get("uid") == owner.get("uid")]
    new = [p for p in new if not p.gone and not is_deleting(p.obj) and not is_finished(p.obj)]
    if wanted.get("ready") is False and any(is_ready(p.obj) for p in new):
        return None  # whether a replacement must not be ready, or need not be
    if any(p.effective is None and is_ready(p.obj) for p in new):
        return None
    ended = [u for u in at_first if u in now and controller(now[u].obj).get("uid") == owner.get("uid")]
    ended = sorted((u for u in ended if now[u].ended <= pod.ended), key=lambda u: now[u].ended)
    values = set()
    for group in (ended, [u for u in ended if u in members]):  # the page does not say whose replacements these are
        taken: dict[int, str] = {}
        fits = {u: [i for i, p in enumerate(new) if _fits(now[u], p, wanted, zones)] for u in group}
        values.add([_take(u, fits, taken, set()) for u in group][-1])
    return values.pop() if len(values) == 1 else None


def _take(uid: str, fits: dict[str, list[int]], taken: dict[int, str], tried: set[int]) -> bool:
    """Find a replacement for a pod, so that those before it keep one."""
    for i in fits[uid]:
        if i not in tried:
            tried.add(i)
            if i not in taken or _take(taken[i], fits, taken, tried):
                taken[i] = uid
                return True
    return False


def is_ready(obj: Obj) -> bool:
    c = condition(obj, "Ready")
    return c is not None and c.get("status") == "True"


def _fits(pod: Pod, other: Pod, wanted: Obj, zones: dict[str, str]) -> bool:
    """Whether one pod is what the other's replacement must be."""
    same_name = other.obj["metadata"]["name"] == pod.obj["metadata"]["name"]
    if controller(pod.obj).get("kind") == "StatefulSet" and not same_name:
        return False
    fits = wanted.get("ready") is False or (is_ready(other.obj) and other.effective is True)
    if wanted.get("node"):
        fits &= bool(other.node) and (other.node == pod.node) == (wanted["node"] == "same")
    if wanted.get("zone"):
        mine, its, zone = zones.get(pod.node or "", ""), zones.get(other.node or "", ""), wanted["zone"]
        fits &= bool(its) and (its == mine if zone == "same" else its != mine if zone == "other" else its == zone)
    return fits


def _begins(q: Question, wanted: Obj) -> list[tuple[Version, Pod, bool]]:
    """When each pod first began to match, after the first list; and whether it was selected all the time."""
    now: dict[str, Pod] = {}
    began: dict[str, tuple[Version, Pod, bool]] = {}
    was: set[str] = set()
    for v in q.world.sequence("pods"):
        uid = v.key[1]
        now[uid] = updated(now.get(uid), v)
        inside = selected(q, v.obj) and not (v.deleted and uid not in was and uid not in began)
        match = matches(now[uid], wanted)
        if match is None:
            raise UndecidedError("a pod may have begun to match")
        if inside and match and uid not in began:
            if not v.listed:
                began[uid] = (v, now[uid], True)
            else:
                was.add(uid)
        if uid in was and not match:
            raise UndecidedError("a pod that matched from the begin no longer does")
    return [b for uid, b in began.items() if uid not in was]


def per_second(text: str) -> float:
    number, _, unit = text.partition("/")
    return float(number) / {"s": 1, "m": 60, "h": 3600}[unit]


def _rate(q: Question, wanted: Obj) -> Trace:
    """In each window, a tenth shorter or longer than it says, so many pods or nodes began to match."""
    over = seconds(wanted.get("over", "30s"))
    tenth = over / 10
    begins = _begins(q, wanted)
    most = math.floor(per_second(wanted["at-most"]) * over + 1e-9) if wanted.get("at-most") else None
    least = math.ceil(per_second(wanted["at-least"]) * over - 1e-9) if wanted.get("at-least") else None
    names = [(b[1].node if wanted.get("per") == "node" else b[1].obj["metadata"]["uid"]) for b in begins]
    if len(set(names)) < len(names):
        raise UndecidedError("a node whose pods began one after the other")
    first = q.world.listed.get("pods", math.inf)

    def value(t: float) -> Value:
        if t - over < first:
            return None
        certain = sum(max(t - over + tenth, q.a) < b.lo and b.hi <= t for b, _, _ in begins)
        possible = sum(t - over < b.hi and b.lo <= t for b, _, _ in begins)
        surely = sum(max(t - over, q.a) < b.lo and b.hi <= t for b, _, _ in begins)
        could = sum(t - over - tenth < b.hi and b.lo <= t for b, _, _ in begins)
        found = []
        if most is not None:
            found.append(False if certain > most else True if possible <= most else None)
        if least is not None:
            found.append(True if surely >= least else False if could < least else None)
        return all_of(found)

    moments = [m + d for b, _, _ in begins for m in (b.lo, b.hi) for d in (0, over, over - tenth, over + tenth)]
    moments += [math.nextafter(m, math.inf) for m in moments] + [math.nextafter(m, -math.inf) for m in moments]
    return masked(sampled([*moments, q.world.start, first + over], value), q.world.masks("pods"))


def _order(q: Question, wanted: Obj) -> Trace:
    """``least`` pods began to match since ``a``, none before one that had to begin earlier."""
    by, least = wanted.get("by"), wanted.get("least", 2)
    begins = [(v, pod) for v, pod, _ in _begins(q, wanted)]
    if any(v.lo < q.a < v.hi for v, _ in begins):
        raise UndecidedError("a pod may have begun before")
    begins = [(v, pod) for v, pod in begins if v.lo >= q.a]
    rows: list[Row] = [(-math.inf, -math.inf, False, None)]
    last, number, broken = None, 0, False
    for v, pod in begins:
        number += 1
        rank = get(pod.obj, "spec", "priority") or 0
        if by != "priority":
            tail = pod.obj["metadata"]["name"].rpartition("-")[2]
            if not tail.isdigit():
                raise UndecidedError("no ordinal")
            rank = int(tail)
        rank = -rank if wanted.get("descending") else rank
        if last is not None and rank < last[0]:
            if v.lo <= last[1]:
                raise UndecidedError("at one time")
            broken = True
        last = (max(rank, last[0]) if last else rank, v.hi)
        rows.append((v.lo, v.hi, number >= least and not broken, v.order))
    return masked(steps_of(rows), q.world.masks("pods"))
