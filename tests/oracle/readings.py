"""Statements about readings: locks, metrics, probes; and the ends of pods in a shutdown."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from tests.oracle.objects import stamp
from tests.oracle.podsets import is_deleting, members_at
from tests.oracle.question import Question, UndecidedError, node_names, seconds
from tests.oracle.trace import Row, Trace, Value, all_of, any_of, combined, masked, no, sampled, steps_of
from tests.oracle.world import Obj, Window, get

LOCKS = ("inhibitor-locks", "inhibitors")
PREFIX = "kubelet_graceful_shutdown_"


def of_nodes(q: Question, statement: Callable[[Question, str], Trace]) -> Trace:
    traces = [statement(q, name) for name in node_names(q, q.params["node"])]
    return combined(traces, any_of if q.operator == "never" else all_of)


def inhibitor_held(q: Question) -> Trace:
    return of_nodes(q, _held)


def _held(q: Question, node: str) -> Trace:
    who, wanted = q.params.get("who", "kubelet"), q.params.get("held", True)
    readings = []
    for e in q.world.entries:
        if e["kind"] == "host" and e["type"] in LOCKS and e.get("node") == node and e["object"] is not None:
            locks = [i for i in e["object"] if i.get("who") == who and i.get("mode") == "delay"]
            held = any("shutdown" in (i.get("what") or "").split(":") for i in locks)
            readings.append((e.get("since") or e["t"] - 0.5, e["t"], held == wanted))
    acts = [t for step in q.world.steps.values() for t in (*step.sent, *step.fired) if node in step.nodes]
    acts += [
        e["t"]
        for e in q.world.entries
        if e["kind"] == "action" and e.get("node") == node and e["object"]["phase"] == "undo"
    ]
    rows: list[Row] = []
    for i, (lo, hi, value) in enumerate(readings):
        following = readings[i + 1][0] if i + 1 < len(readings) else math.inf
        ends = min([following, lo + 15, *(t for t in acts if t >= lo)])
        if ends > hi:
            rows.append((lo, hi, value, None))
            if ends < following or following > hi:
                rows.append((ends, ends, None, None))
    return masked(steps_of(rows), [*q.world.masks(f"host@{node}")])


def _scrapes(q: Question, node: str) -> list[tuple[float, float, dict[str, float] | None]]:
    """The metrics of a kubelet, None where there was no answer."""
    found: list[tuple[float, float, dict[str, float] | None]] = []
    for e in q.world.entries:
        if e["kind"] == "metrics" and e.get("node") == node:
            values = None
            if str(e["type"]) == "200":
                values = {str(line).rpartition(" ")[0]: float(str(line).rpartition(" ")[2]) for line in e["object"]}
            found.append((e.get("since") or e["t"] - 0.5, e["t"], values))
    return found


def metric(q: Question) -> Trace:
    p = q.params
    if p.get("controller-manager") or p.get("query") or not p.get("node"):
        raise UndecidedError("metrics of other sources")
    return of_nodes(q, _metric)


def _metric(q: Question, node: str) -> Trace:
    p, name = q.params, q.params["name"]
    rows: list[Row] = []
    scrapes = _scrapes(q, node)
    if p.get("increase") and any(lo < q.a < hi for lo, hi, _ in scrapes):
        before = [s for s in scrapes if s[1] <= q.a]
        scrapes = [s for s in scrapes if not s[0] < q.a < s[1]]
        if not before:
            raise UndecidedError("no reading before")
    total, last = 0.0, None
    for lo, hi, values in scrapes:
        reading = None if values is None else values.get(name)
        if reading is None:
            rows.append((lo, hi, None, None))
            continue
        value = reading
        if p.get("increase"):
            if lo >= q.a and last is not None:
                total += reading - last if reading >= last else reading
            elif lo >= q.a:
                raise UndecidedError("no reading before")
            last, value = reading, total
        fits = p.get("at-least", -math.inf) <= value <= p.get("at-most", math.inf)
        rows.append((lo, hi, fits, None))
    return masked(_late(steps_of(rows)), q.world.masks(f"metrics@{node}"))


def _late(trace: Trace) -> Trace:
    """With bounds that never go back."""
    found: Trace = []
    for c in trace:
        lo = max(c.lo, found[-1].lo) if found else c.lo
        found.append(type(c)(lo, max(lo, c.hi), c.value, c.order))
    return found


def shutdown_metrics(q: Question) -> Trace:
    return of_nodes(q, _gauges)


def _gauges(q: Question, node: str) -> Trace:
    p = q.params
    since = q.case.moment(p["since"]) if p.get("since") else None
    at = (since.lo, since.hi) if since else (q.a, q.a)
    offset = q.case.offset(node)
    rows: list[Row] = []
    gap = -math.inf
    for lo, hi, values in _scrapes(q, node):
        if values is None:
            rows.append((lo, hi, None, None))
            gap = hi
            continue
        start, end = values.get(f"{PREFIX}start_time_seconds"), values.get(f"{PREFIX}end_time_seconds")
        if start is None or end is None:
            rows.append((lo, hi, None if not start and not end and hi < gap + 5.5 else False, None))
            continue
        started = _started(start, at, offset)
        if offset is not None and max(start, end) > hi + offset[1]:
            started = None  # a moment that has not come: no word on which of both is wrong
        parts: list[Value] = []
        if p.get("started") is not None:
            parts.append(started if p["started"] else no(started))
        if p.get("ended") is not None:
            ended = all_of([started, bool(end and end >= start)])
            parts.append(ended if p["ended"] else no(ended))
        if p.get("duration-at-most") is not None:
            done = started is True and end >= start > 0
            parts.append(end - start <= seconds(p["duration-at-most"]) + 1 if done else None)
        early = not start and not end and hi < gap + 5.5
        rows.append((lo, hi, None if early else all_of(parts), None))
    return masked(_late(steps_of(rows)), q.world.masks(f"metrics@{node}"))


def _started(start: float, since: tuple[float, float], offset: tuple[float, float] | None) -> Value:
    """Whether the start is not before ``since``, by the node's clock."""
    if not start:
        return False
    if offset is None:
        return None
    if start >= since[1] + offset[1] + 0.001:
        return True
    return False if start + 1 < since[0] + offset[0] - 1 else None


SHARES = ("success-at-least", "p50-below", "p90-below", "p95-below", "p99-below")


def endpoint_available(q: Question) -> Trace:
    """The time of failures since ``a`` is within the budget: so much of it at least and at most has passed."""
    p, text = q.params, q.params.get("budget", "0s")
    if any(key in p for key in SHARES):
        return combined([_share(q, key) for key in SHARES if key in p], all_of)
    budget = seconds(p["over"]) * float(text[:-1]) / 100 if text.endswith("%") else seconds(text)
    slow = seconds(p["answer-within"]) if p.get("answer-within") else math.inf
    probes = [e for e in q.world.entries if e["kind"] == "probe" and e["type"] == p["probe"]]
    answers = [(e["t"] - e["object"]["seconds"], e["t"], e["object"]) for e in probes]
    if len(answers) < 3:
        raise UndecidedError("no probes")
    usual = sorted(b[1] - a[1] for a, b in pairwise(answers))[len(answers) // 2 - 1]
    valid = min(3 * usual, 5.0)
    failing, maybe = list[Window](), [(-math.inf, answers[0][1]), *q.world.masks(f"probe@{p['probe']}")]
    for (lo, hi, answer), (next_lo, next_hi, _) in pairwise([*answers, (math.inf, math.inf, {})]):
        ok = answer["ok"] and answer["seconds"] <= slow
        maybe.append((lo + valid if ok else lo, next_hi))
        failing += [] if ok else [(hi, min(next_lo, lo + valid))]
    return _within(q, sorted(failing), sorted(maybe), budget)


def _share(q: Question, key: str) -> Trace:
    """One share of the requests of the time ``over``."""
    p, until = q.params, q.a + seconds(q.params["over"])
    percent = float(p[key][:-1]) if key == "success-at-least" else float(key[1:3])
    limit = seconds(p[key]) if key != "success-at-least" else math.inf
    slow = seconds(p["answer-within"]) if p.get("answer-within") and limit == math.inf else math.inf
    answers = [e for e in q.world.entries if e["kind"] == "probe" and e["type"] == p["probe"]]
    requests = [(e["t"] - e["object"]["seconds"], e["t"], e["object"]) for e in answers]
    if len(requests) < 3:
        raise UndecidedError("no probes")
    usual = sorted(b[0] - a[0] for a, b in pairwise(requests))[len(requests) // 2 - 1]
    failing, maybe = list[Window](), [(-math.inf, requests[0][0]), *q.world.masks(f"probe@{p['probe']}")]
    for (sent, got, answer), (following, _, _) in pairwise([*requests, (math.inf, math.inf, {})]):
        last = following == math.inf
        end = max(got, sent + 1.5 * usual) if last else min(following, got + max(3 * usual, 5.0))
        if not answer["ok"] or answer["seconds"] > slow or answer["seconds"] >= limit:
            failing.append((sent, end))
            maybe.append((sent, end))
        maybe.append((end, following))
    fewest = 100 / (100 - percent) if limit < math.inf else 0
    trace = _within(q, sorted(failing), sorted(maybe), (until - q.a) * (100 - percent) / 100, until)
    if sum(q.a <= sent < until for sent, _, _ in requests) < fewest:
        return combined([trace, sampled([q.a - 1], lambda _: None)], all_of)
    return trace


def _within(q: Question, failing: list[Window], maybe: list[Window], budget: float, until: float = math.inf) -> Trace:
    """Whether no more of ``failing``, and of what may be failing, has passed since ``a``, up to ``until``."""
    moments = sorted({q.a, *(m for w in (*failing, *maybe) for m in w if q.a < m < math.inf)})

    hidden_windows = sorted(q.world.masks(f"probe@{q.params['probe']}"))

    def spent(windows: list[Window], t: float) -> float:
        total, known, t = 0.0, q.a, min(t, until)
        for begin, end in windows:
            if begin >= t:
                break
            inside = max(0.0, min(end, t) - max(begin, known))
            total, known = total + inside, max(known, min(end, t))
        return total

    def value(t: float) -> Value:
        hidden = spent(hidden_windows, t)
        fine = spent(maybe, t + 0.001) <= budget  # at the border it is the next moment that counts
        return False if spent(failing, t) - hidden > budget else True if fine else None

    for windows in (failing, maybe):
        for before, after in pairwise(list(moments)):
            had, has = spent(windows, before), spent(windows, after)
            if had <= budget < has:
                crossing = before + (budget - had) * (after - before) / (has - had)
                moments += [crossing - 1e-6, crossing, crossing + 1e-6]
    return sampled([q.a - 1, *moments], value)


def _ends(pod: Obj) -> list[tuple[float, int | None]] | None:
    """The end and exit code of each container, None while one runs."""
    found: list[tuple[float, int | None]] = []
    for s in get(pod, "status", "containerStatuses") or ():
        ended = get(s, "state", "terminated")
        at = stamp(ended.get("finishedAt")) if ended else None
        if at is None:
            return None
        found.append((at, ended.get("exitCode")))
    return found or None


def _killed_at(q: Question, uid: str) -> list[float]:
    """When the kubelet began to stop a pod, by its Killing Events."""
    events = [v.obj for v in q.world.sequence("events") if v.obj.get("reason") == "Killing"]
    mine = [o for o in events if get(o, "involvedObject", "uid") == uid]
    found = [stamp(o.get("firstTimestamp") or o.get("eventTime")) for o in mine]
    return [t for t in found if t is not None]


def grace_respected(q: Question) -> Trace:
    """Each pod of the set: ended on its own or after its grace, and not 2 s later. Shutdowns are beyond the oracle."""
    now, members = members_at(q)
    if not members:
        raise UndecidedError("an empty set")
    if any(step.action in ("poweroff", "reboot", "prepare-for-shutdown", "schedule-shutdown", "power-button")
           for step in q.world.steps.values()):  # fmt: skip
        raise UndecidedError("the grace period of a shutdown")
    rows: list[Row] = []
    values: dict[str, Value] = dict.fromkeys(members)
    for v in [*(now[u].version for u in members), *q.world.sequence("pods")[q.place :]]:
        uid = v.key[1]
        if uid not in members:
            continue
        ends, killed = _ends(v.obj), _killed_at(q, uid)
        grace = get(v.obj, "metadata", "deletionGracePeriodSeconds")
        if values[uid] is None and ends and len(killed) == 1 and grace and is_deleting(v.obj):
            last = max(t for t, _ in ends)
            early = any(code == 137 and t < killed[0] + grace - 2 for t, code in ends)
            sure = all(code != 137 or t >= killed[0] + grace + 1 for t, code in ends)
            late, fine = last > killed[0] + grace + 4, last <= killed[0] + grace + 1
            values[uid] = False if early or late else True if sure and fine else None
        if v.order in [w.order for w in q.world.sequence("pods")[q.place :]]:
            rows.append((v.lo, v.hi, q.each(list(values.values())), v.order))
    return masked(steps_of(rows), q.world.masks("pods", "events"))


def termination_order(q: Question) -> Trace:
    """Only that a pod of normal priority ended after the critical ones began to be stopped decides here."""
    raise UndecidedError("the groups of a shutdown")
