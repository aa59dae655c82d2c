"""``pods``, its aliases, and the sets that other assertions form of pods."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

from tests.oracle.begins import order, rate
from tests.oracle.effective import Off, is_effective, outages, ready
from tests.oracle.podsets import Pod, controller, is_deleting, is_finished, matches, members_at, selected, updated
from tests.oracle.question import Question, UndecidedError, is_ready
from tests.oracle.trace import Row, Trace, Value, all_of, any_of, masked, no, one_of, sampled, steps_of
from tests.oracle.world import Obj, Version, World, get

PRESETS: dict[str, Obj] = {
    "pods-disrupted": {"each": {"disruption": "any"}},
    "pods-evicted": {"each": {"disruption": "EvictionByEvictionAPI", "deleting": True}},
    "pods-rejected": {"count": {"phase": "Failed", "reason": "NodeShutdown", "least": 1}},
    "pods-rescheduled": {"each": {"replaced": {"node": "other"}}},
    "pods-stuck": {"each": {"deleting": True, "gone": False}},
}
MOST_STATES = 6
QUESTIONS = ("each", "any", "none", "count", "rate", "order")


def preset(name: str, params: Obj) -> Obj:
    """The parameters of ``pods`` for an alias: parts of its question, or another one with the same filter."""
    if name not in PRESETS:
        return params
    (question, base), *_ = PRESETS[name].items()
    own = next((k for k in QUESTIONS if k in params), question)
    preset_filter = {k: v for k, v in base.items() if own == "count" or k not in ("least", "most")}
    return {**params, own: {**preset_filter, **(params.get(own) or {})}}


def pods(q: Question) -> Trace:
    """The one question that ``pods`` asks."""
    name = next((k for k in QUESTIONS if k in q.params), "")
    wanted = q.params.get(name)
    if wanted is None:
        raise UndecidedError("no question")
    if q.params.get("not-on"):
        nodes = q.case.nodes(q.params["not-on"])
        if not nodes:
            raise UndecidedError("not on any node")
        apart = wanted.get("replaced")
        wanted = {**wanted, "not-on": nodes} if apart is None else {**wanted, "replaced": {**apart, "not-on": nodes}}
    about_machines = {"ready", "replaced"} & wanted.keys()
    if about_machines and is_effective(q) and any(outages(q.world, node) for node in _nodes(q.world)):
        return _effective(q, name, wanted)
    if name == "rate":
        return rate(q, wanted)
    if name == "order":
        return order(q, wanted)
    if name == "count" and "at" not in q.params:
        return _count_now(q, wanted)
    return _of_set(q, name, wanted)


def _nodes(world: World) -> set[str]:
    return {str(version.obj["metadata"]["name"]) for version in world.sequence("nodes")}


def _bounds(number: int, wanted: Obj) -> bool:
    return bool(wanted.get("least", 0) <= number <= wanted.get("most", math.inf))


def _count(values: list[Value], wanted: Obj) -> Value:
    """Whether the number of true ones is within bounds, wherever the unknown ones are."""
    if "least" not in wanted and "most" not in wanted:
        raise UndecidedError("count without bounds")
    low = sum(v is True for v in values)
    return one_of({_bounds(n, wanted) for n in range(low, low + sum(v is None for v in values) + 1)})


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
        node = get(v.obj, "spec", "nodeName")
        if node and node not in offs:
            offs[node] = outages(q.world, node)

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
        return one_of(values)

    moments = [m for v in sequence for m in (v.lo, v.hi)] + [q.world.start]
    moments += [m for each in offs.values() for o in each for m in (o.since, o.lo, o.hi, o.back)]
    return masked(sampled(moments, value), q.world.masks("pods"))


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
    values = set[Value]()
    for group in (ended, [u for u in ended if u in members]):  # the page does not say whose replacements these are
        taken: dict[int, str] = {}
        fits = {u: [i for i, p in enumerate(new) if _fits(now[u], p, wanted, zones)] for u in group}
        values.add([_take(u, fits, taken, set()) for u in group][-1])
    return one_of(values)


def _take(uid: str, fits: dict[str, list[int]], taken: dict[int, str], tried: set[int]) -> bool:
    """Find a replacement for a pod, so that those before it keep one."""
    for i in fits[uid]:
        if i not in tried:
            tried.add(i)
            if i not in taken or _take(taken[i], fits, taken, tried):
                taken[i] = uid
                return True
    return False


def _fits(pod: Pod, other: Pod, wanted: Obj, zones: dict[str, str]) -> bool:
    """Whether one pod is what the other's replacement must be."""
    same_name = other.obj["metadata"]["name"] == pod.obj["metadata"]["name"]
    if controller(pod.obj).get("kind") == "StatefulSet" and not same_name:
        return False
    fits = wanted.get("ready") is False or (is_ready(other.obj) and other.effective is True)
    if wanted.get("node"):
        fits &= bool(other.node) and (other.node == pod.node) == (wanted["node"] == "same")
    if wanted.get("not-on"):
        fits &= bool(other.node) and other.node not in wanted["not-on"]
    if wanted.get("zone"):
        mine, its, zone = zones.get(pod.node or "", ""), zones.get(other.node or "", ""), wanted["zone"]
        fits &= bool(its) and (its == mine if zone == "same" else its != mine if zone == "other" else its == zone)
    return fits
