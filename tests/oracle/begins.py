"""Rates and orders of pods: by when each first began to match."""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.oracle.podsets import Pod, matches, selected, updated
from tests.oracle.question import Question, UndecidedError, seconds
from tests.oracle.trace import Row, Trace, Value, all_of, combined, masked, one_of, sampled, steps_of
from tests.oracle.world import Obj, Version, get

Begin = tuple[Version, Pod]
VARIANTS = [(since, frozen) for since in (False, True) for frozen in (False, True)]


def _begins(q: Question, wanted: Obj, since: bool, frozen: bool) -> list[Begin]:
    """When each pod first began to match, ever or since ``a``; of all pods, or of those that existed at ``a``.

    The page says neither, so only what does not depend on it is certain.
    """
    now: dict[str, Pod] = {}
    did: dict[str, Value] = {}
    born: dict[str, float] = {}
    began: dict[str, Begin] = {}
    for v in q.world.sequence("pods"):
        uid = v.key[1]
        now[uid] = updated(now.get(uid), v)
        born.setdefault(uid, v.hi)
        match = all_of([matches(now[uid], wanted), selected(q, v.obj)])
        if match is None:
            raise UndecidedError("a pod may have begun to match")
        begins = match and not did.get(uid)
        did[uid] = match
        if v.lo < q.a < v.hi:
            raise UndecidedError("what happened at the start")
        if begins and uid not in began and not (since and v.hi <= q.a) and not (frozen and born[uid] > q.a):
            began[uid] = (v, now[uid])
    return [(v, pod) for v, pod in began.values() if not v.listed]


def _common(trace: Callable[[list[Begin]], Trace], q: Question, wanted: Obj) -> Trace:
    """What all readings of the page say."""
    traces = [trace(_begins(q, wanted, *variant)) for variant in VARIANTS]
    if all(t == traces[0] for t in traces):
        return traces[0]
    return combined(traces, lambda values: one_of(set(values)))


def per_second(text: str) -> float:
    number, _, unit = text.partition("/")
    return float(number) / {"s": 1, "m": 60, "h": 3600}[unit]


def rate(q: Question, wanted: Obj) -> Trace:
    """In each window, a tenth shorter or longer than it says, so many pods or nodes began to match."""
    over, first = seconds(wanted.get("over", "30s")), q.world.listed.get("pods", math.inf)
    most = math.floor(per_second(wanted["at-most"]) * over + 1e-9) if wanted.get("at-most") else math.inf
    least = math.ceil(per_second(wanted["at-least"]) * over - 1e-9) if wanted.get("at-least") else 0

    tenth = over / 10

    def trace(begins: list[Begin]) -> Trace:
        spans = [(v.lo, v.hi) for v, _ in begins]
        if wanted.get("per") == "node" and len({pod.node for _, pod in begins}) < len(begins):
            raise UndecidedError("a node whose pods began one after the other")

        def certain(t: float, length: float) -> int:
            return sum(max(t - length, q.a) < lo and hi <= t for lo, hi in spans)

        def possible(t: float, length: float) -> int:
            return sum(t - length < hi and lo <= t for lo, hi in spans)

        def value(t: float) -> Value:
            if t - over < first:
                return None
            few = False if certain(t, over - tenth) > most else True if possible(t, over) <= most else None
            many = True if certain(t, over) >= least else False if possible(t, over + tenth) < least else None
            return all_of([few, many])

        moments = [m + d for span in spans for m in span for d in (0, over, over - tenth, over + tenth)]
        moments += [math.nextafter(m, to) for m in moments for to in (-math.inf, math.inf)]
        return sampled([*moments, q.world.start, first + over], value)

    return masked(_common(trace, q, wanted), q.world.masks("pods"))


def order(q: Question, wanted: Obj) -> Trace:
    """``least`` pods began to match since ``a``, none before one that had to begin earlier."""

    def rank(pod: Pod) -> int:
        tail = pod.obj["metadata"]["name"].rpartition("-")[2]
        if wanted.get("by") != "priority" and not tail.isdigit():
            raise UndecidedError("no ordinal")
        found = int(get(pod.obj, "spec", "priority") or 0) if wanted.get("by") == "priority" else int(tail)
        return -found if wanted.get("descending") else found

    def trace(begins: list[Begin]) -> Trace:
        rows: list[Row] = [(-math.inf, -math.inf, False, None)]
        highest, last, broken = -math.inf, -math.inf, False
        since = [(v, rank(pod)) for v, pod in begins if v.lo >= q.a]
        for number, (v, own) in enumerate(since, 1):
            if own < highest and v.lo <= last:
                raise UndecidedError("at one time")
            broken |= own < highest
            highest, last = max(highest, own), v.hi
            rows.append((v.lo, v.hi, number >= wanted.get("least", 2) and not broken, v.order))
        if broken:  # the page does not say whether a pod that begins later counts before
            rows = [(lo, hi, None if value else False, order) for lo, hi, value, order in rows]
        return steps_of(rows)

    return masked(_common(trace, q, wanted), q.world.masks("pods"))
