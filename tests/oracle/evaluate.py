"""What a verdict may be, over all moments at which things may have happened."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from tests.oracle import disruptions, happenings, objects, readings
from tests.oracle.expressions import expression
from tests.oracle.pods import PRESETS, pods, preset
from tests.oracle.question import Case, Moment, Question, UndecidedError, seconds
from tests.oracle.trace import BOTH, HELD, VIOLATED, Trace, always, first_true, negated, ordered, value_at, within
from tests.oracle.world import Obj

UNDECIDED = "inconclusive"
ASSERTIONS: dict[str, Callable[[Question], Trace]] = {
    "at-most-one": disruptions.at_most_one,
    "budget-respected": disruptions.budget_respected,
    "endpoint-available": readings.endpoint_available,
    "event": happenings.event,
    "eviction-refused": happenings.eviction_refused,
    "expression": expression,
    "grace-respected": readings.grace_respected,
    "inhibitor-held": readings.inhibitor_held,
    "lease-fresh": objects.lease_fresh,
    "metric": readings.metric,
    "node-condition": objects.node_condition,
    "node-rebooted": happenings.node_rebooted,
    "node-taint": objects.node_taint,
    "nodes-ready": objects.nodes_ready,
    "pods": pods,
    "pods-started": happenings.pods_started,
    "shutdown-metrics": readings.shutdown_metrics,
    "termination-order": readings.termination_order,
    "volume-attached": objects.volume_attached,
    "workload-available": objects.workload_available,
    **dict.fromkeys(PRESETS, pods),
}
OF_SETS: dict[str, tuple[str, ...]] = dict.fromkeys(("pods", "grace-respected", *PRESETS), ("pods",))
SINCE = {"event", "pods-started", "eviction-refused", "node-rebooted", "endpoint-available", "shutdown-metrics"}
MOST_PLACES, MOST_MOMENTS = 12, 400


def judge(case: Case, expectation: Obj, others: dict[str, Obj] | None = None) -> str:
    """held, violated or inconclusive."""
    try:
        if expectation.get("order"):
            found = _order(case, [(others or {})[name] for name in expectation["order"]])
        else:
            found = _verdicts(case, expectation)
    except UndecidedError:
        return UNDECIDED
    return next(iter(found)) if len(found) == 1 else UNDECIDED


def _verdicts(case: Case, expectation: Obj) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for q, trace, a in _histories(case, expectation):
        found |= _verdict(case, expectation, q, trace, a)
        if found == BOTH:
            break
    return found


def _histories(case: Case, expectation: Obj) -> Iterator[tuple[Question, Trace, float]]:
    """Each set that there may have been, and each moment from which it may count."""
    moment = case.moment(expectation.get("after"))
    name = expectation["assert"]
    operator = next((o for o in ("within", "never", "always") if o in expectation), "")
    q = Question(case, preset(name, expectation.get("with") or {}), operator)
    for placed in _places(q, name, case.formed(q.params.get("at"), expectation.get("after"))):
        counts_since = name in SINCE or {"order", "rate"} & placed.params.keys() or "increase" in placed.params
        fixed = None if counts_since or "all" in placed.params.values() else ASSERTIONS[name](placed)
        for a in _moments(case, moment, fixed, name, expectation):
            counted = replace(placed, a=a)
            trace = fixed if fixed is not None else ASSERTIONS[name](counted)
            if moment.order is not None:
                trace = ordered(trace, a - moment.shift, moment.order)
            yield counted, trace, a


def _places(q: Question, name: str, formed: Moment) -> Iterator[Question]:
    """The states that a set may have been formed of."""
    kinds = OF_SETS.get(name)
    if name == "workload-available":
        of = {"DaemonSet": "daemonsets", "Deployment": "deployments", "StatefulSet": "statefulsets"}
        kinds = tuple(of[k] for k in sorted(of) if k in (q.params.get("kinds") or of))
    elif name == "volume-attached":
        kinds = ("persistentvolumeclaims", "volumeattachments") if q.params.get("claim") else ("volumeattachments",)
    dynamic = name in OF_SETS and ("rate" in q.params or "order" in q.params)
    dynamic |= name in OF_SETS and "count" in q.params and "at" not in q.params
    if kinds is None or dynamic:
        yield q
        return
    if any(a <= formed.hi and formed.lo <= b for a, b in q.world.masks(*kinds)):
        raise UndecidedError("the set was not observed")
    sequence = q.world.sequence(*kinds)
    if formed.order is not None:  # before the effect of the step
        sequence = [v for v in sequence if v.order < formed.order or v.listed]
    least = sum(v.hi <= formed.lo or v.listed for v in sequence)
    most = sum(v.lo <= formed.hi or v.listed for v in sequence)
    if most - least >= MOST_PLACES:
        raise UndecidedError("too many sets")
    for place in range(least, most + 1):
        yield replace(q, place=place, formed=formed.hi)


def _moments(case: Case, moment: Moment, trace: Trace | None, name: str, expectation: Obj) -> list[float]:
    """Those from which it may count, and between which nothing differs."""
    lo, hi = moment.lo, moment.hi
    if lo == hi:
        return [lo]
    if not math.isfinite(hi):
        raise UndecidedError("a step without a moment")
    if trace is not None:
        points = {m for c in trace for m in (c.lo, c.hi)}
    else:
        kinds = {"event": ("events",)}.get(name, ("nodes", "pods"))
        points = {m for v in case.world.sequence(*kinds) for m in (v.lo, v.hi)}
        points |= {e["t"] for e in case.world.entries if e["kind"] in ("host", "metrics", "probe")}
    shifts = {0.0, *_bounds(expectation)}
    points = {p - s for p in points for s in shifts}
    inside = sorted({lo, hi, *(p for p in points if lo < p < hi)})
    found = sorted({*inside, *((a + b) / 2 for a, b in pairwise(inside))})
    if len(found) > MOST_MOMENTS:
        raise UndecidedError("too many moments")
    return found


def _bounds(expectation: Obj) -> Iterator[float]:
    bound = seconds(expectation["within"]) if expectation.get("within") else 0.0
    lasting = seconds(expectation["for"]) if expectation.get("for") else 0.0
    yield from (bound, lasting, bound + lasting)
    for name in ("never", "always"):
        if isinstance(expectation.get(name), dict) and expectation[name].get("for"):
            yield seconds(expectation[name]["for"])


def _verdict(case: Case, expectation: Obj, q: Question, trace: Trace, a: float) -> frozenset[str]:
    if q.operator == "within":
        lasting = seconds(expectation["for"]) if expectation.get("for") else None
        return within(trace, a, seconds(expectation["within"]), lasting)
    if not q.operator:
        value = value_at(trace, a)
        return BOTH if value is None else frozenset({HELD if value else VIOLATED})
    trace = negated(trace) if q.operator == "never" else trace
    until = expectation[q.operator]
    if until is True:
        raise UndecidedError("always: true")
    if until.get("for"):
        return always(trace, a, a + seconds(until["for"]))
    end = case.begin(until["until"])
    if end.lo <= a:
        raise UndecidedError("no time between the steps")
    found: frozenset[str] = frozenset()
    for b in _moments(case, end, trace, "", expectation):
        order = ordered(trace, b, end.order)
        found |= always(order, a, b)
    return found


def _order(case: Case, parts: list[Obj]) -> frozenset[str]:
    """Each first came true by its deadline, none before the one named ahead of it."""
    firsts = []
    for part in parts:
        early, late, in_time = math.inf, -math.inf, True
        for _, trace, a in _histories(case, part):
            if part.get("for") or not part.get("within"):
                raise UndecidedError("an order of something else")
            one = first_true(trace, a, seconds(part["within"]))
            early, late = min(early, one[0]), max(late, one[1])
            in_time &= HELD in within(trace, a, seconds(part["within"]), None)
        firsts.append((early, late))
        if not in_time or early == math.inf:
            return frozenset({VIOLATED})
    held = all(late < math.inf for _, late in firsts)
    held &= all(a[1] <= b[0] for a, b in pairwise(firsts))
    if held:
        return frozenset({HELD})
    if any(b[1] < a[0] for a, b in pairwise(firsts)):
        return frozenset({VIOLATED})
    return BOTH


def steady(case: Case, expectation: Obj) -> str:
    """What was true just before the first step; where that is not proven, the oracle does not know."""
    begin = case.begin(case.first)
    moments = {min(case.step(case.first).sent), begin.lo}
    return _common(_at_moment(case, expectation, math.nextafter(t, -math.inf)) for t in moments)


def recovery(case: Case, expectation: Obj, within: float) -> str:
    """Whether it is true at the deadline, from the last return, undo or proof on; at the end, if that is before."""
    steps = case.world.steps.values()
    end = case.world.end
    ends = [
        max(t for s in steps for t in times(s)) for times in (lambda s: s.returned, lambda s: [*s.returned, *s.proved])
    ]
    deadlines = [t + within for t in ends]
    found = _common(_at_moment(case, expectation, min(t, math.nextafter(end, -math.inf))) for t in deadlines)
    return UNDECIDED if found == VIOLATED and max(deadlines) > end else found


def _common(statuses: Iterable[str]) -> str:
    found = set(statuses)
    return found.pop() if len(found) == 1 else UNDECIDED


def _at_moment(case: Case, expectation: Obj, t: float) -> str:
    """Of a set that is formed at the moment that is judged."""
    name = expectation["assert"]
    q = Question(case, preset(name, expectation.get("with") or {}), "", a=t)
    try:
        values = {value_at(ASSERTIONS[name](p), t) for p in _places(q, name, Moment(t, t))}
    except UndecidedError:
        return UNDECIDED
    return UNDECIDED if len(values) != 1 or None in values else HELD if True in values else VIOLATED
