"""What an assertion is asked: of which world, about which nodes, counted from when, of a set formed when."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.trace import Value
from tests.oracle.world import Obj, Step, Version, World, get

ON_API = {"cordon", "uncordon", "taint", "untaint", "out-of-service", "delete-node", "create-node", "delete-pod"}
ON_API |= {"force-delete-pod", "evict-pod", "drain", "mark-disruption", "remove-finalizers", "patch-budget", "scale"}
ON_API |= {"rollout-restart", "preempt", "network-unavailable"}
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class UndecidedError(Exception):
    """The oracle does not know: what was asked is beyond it, or beyond the page."""


def seconds(text: str | float) -> float:
    """``90s``, ``1m30s`` or a number. Raises UndecidedError for bounds made of facts."""
    parts = re.findall(r"([\d.]+)(ms|s|m|h)", str(text))
    if not parts or "".join(n + u for n, u in parts) != str(text).replace(" ", ""):
        raise UndecidedError(f"bound {text!r}")
    return sum(float(n) * UNITS[u] for n, u in parts)


@dataclass(frozen=True, slots=True)
class Moment:
    """Between two moments; ``order``: it is that of the version of this resourceVersion."""

    lo: float
    hi: float
    order: float | None = None
    shift: float = 0.0  # seconds after that version


@dataclass(slots=True)
class Case:
    """A recording, and what an experiment binds to it."""

    world: World
    targets: dict[str, list[str]]
    namespace: str
    first: str  # the first step
    effective: bool = False  # ``as``, where an expectation does not say it
    cache: dict[Any, Any] = field(default_factory=dict)

    def step(self, name: str) -> Step:
        """A recorded step. Raises UndecidedError."""
        step = self.world.steps.get(name)
        if step is None or not step.sent:
            raise UndecidedError(f"no step {name}")
        return step

    def begin(self, name: str) -> Moment:
        """From when a step counts."""
        step = self.step(name)
        if step.action not in ON_API:
            fired = min(step.fired or step.sent)
            return Moment(fired, fired)
        shown = self._shown(step)
        answered = [a["t"] for a in step.answers if a["delivery"] == "answered"]
        if shown is None and not answered:
            raise UndecidedError(f"step {name} has no moment")
        lo, hi = min(step.sent), min(answered, default=math.inf)
        if shown is None:
            return Moment(lo, hi)
        return Moment(max(lo, shown.lo), max(lo, min(shown.hi, hi)), shown.order)

    def _shown(self, step: Step) -> Version | None:
        """The version that proves a step on the API: the first that shows what it does and did not before."""
        pods = {p.get("uid") for a in step.answers for p in a.get("pods") or () if isinstance(p, dict)}
        kind, before = ("pods", pods) if step.action.endswith("-pod") else ("nodes", set(step.nodes))
        was: dict[str, bool] = {}
        for v in self.world.sequence("nodes", "pods"):
            name = v.key[1] if kind == "pods" else v.obj["metadata"]["name"]
            if v.kind != kind or name not in before:
                continue
            is_so = shows(step, v)
            if is_so and was.get(name) is False and v.hi >= min(step.sent):
                return v
            was[name] = bool(is_so)
        return None

    def moment(self, text: str | None) -> Moment:
        """The moment ``after``. Raises UndecidedError."""
        head, _, tail = (text or self.first).partition(" + ")
        shift = seconds(tail) if tail else 0.0
        if head.startswith("end("):
            step = self.step(head[4:-1])
            if len(step.returned) < len(step.sent):
                raise UndecidedError(f"{head} did not return")
            return Moment(max(step.returned) + shift, max(step.returned) + shift)
        begin = self.begin(head)
        return Moment(begin.lo + shift, begin.hi + shift, begin.order, shift)

    def formed(self, at: str | None, after: str | None) -> Moment:
        """When a set is formed: when nodefall began the step ``at``, or at the moment ``after``."""
        text = at or after or self.first
        head, _, tail = text.partition(" + ")
        if head.startswith("end("):
            return self.moment(text)
        step, shift = self.step(head), seconds(tail) if tail else 0.0
        begin = self.moment(text)
        if shift:  # the page says nothing of steps on the API here
            return Moment(min(step.sent) + shift, begin.hi)
        fired = min(step.fired or step.sent) if step.action not in ON_API else min(step.sent)
        return Moment(min(step.sent), fired, begin.order)

    def nodes(self, text: str | None) -> list[str] | None:
        """The nodes of a parameter; None: not asked."""
        if text is None:
            return None
        if text == "all":
            return []
        return self.targets.get(text, [text])

    def space(self, text: str | None) -> str | None:
        return self.namespace if text == "workload" else text

    def offset(self, node: str) -> tuple[float, float] | None:
        """By how much a node's clock is ahead at least and at most, if it was measured throughout."""
        found = (-math.inf, math.inf)
        for entry in self.world.entries:
            if entry["kind"] == "meta" and entry.get("type") == "clocks":
                measured = get(entry, "object", "clockOffsets", f"host {node}")
                if measured:
                    ahead, error = measured["seconds"], measured["within"]
                    found = max(found[0], ahead - error), min(found[1], ahead + error)
        return found if math.isfinite(found[0]) and found[0] <= found[1] else None


def shows(step: Step, v: Version) -> bool:
    """Whether a version shows what the step does."""
    obj, action, params = v.obj, step.action, step.params
    if action.endswith("-pod"):
        return v.deleted or bool(get(obj, "metadata", "deletionTimestamp"))
    if action == "delete-node":
        return v.deleted
    if action in ("cordon", "drain", "uncordon"):
        return bool(get(obj, "spec", "unschedulable")) != (action == "uncordon")
    if action in ("taint", "untaint", "out-of-service"):
        key = params.get("key") or "node.kubernetes.io/out-of-service"
        taints = [t for t in get(obj, "spec", "taints") or () if t.get("key") == key]
        effect = params.get("effect")
        return any(effect in (None, t.get("effect")) for t in taints) != (action == "untaint")
    return False


@dataclass(slots=True)
class Question:
    """One statement. ``a``: from when it counts, exactly. ``place``: the set has the state after so many versions."""

    case: Case
    params: Obj
    operator: str
    a: float = math.nan
    place: int = -1
    formed: float = math.nan

    @property
    def world(self) -> World:
        return self.case.world

    def each(self, values: list[Value]) -> Value:
        """Of several nodes: each; under never: any."""
        from tests.oracle.trace import all_of, any_of  # noqa: PLC0415

        return any_of(values) if self.operator == "never" else all_of(values)


def text_matches(pattern: str | None, text: str | None) -> bool:
    """A substring, or a regular expression between slashes."""
    if pattern is None:
        return True
    if len(pattern) > 1 and pattern[0] == pattern[-1] == "/":
        return re.search(pattern[1:-1], text or "") is not None
    return pattern in (text or "")


def condition(obj: Obj | None, name: str) -> Obj | None:
    return next((c for c in get(obj, "status", "conditions") or () if c.get("type") == name), None)


def is_ready(obj: Obj | None) -> bool:
    """Whether the condition Ready of a node or pod is True."""
    c = condition(obj, "Ready")
    return c is not None and c.get("status") == "True"


def node_names(q: Question, param: str | None) -> list[str]:
    """The nodes of a parameter; of ``all`` those that existed at the first step or when judging starts."""
    named = q.case.nodes(param)
    if named:
        return named
    first = min(q.case.step(q.case.first).sent)
    moments = [first] if math.isnan(q.a) else [first, q.a]
    names = set()
    for t in moments:
        names |= nodes_at(q.world, t)
    return sorted(names)


def nodes_at(world: World, t: float) -> set[str]:
    """The nodes that exist at a moment. Raises UndecidedError if one may or may not."""
    there: dict[str, bool] = {}
    for v in world.sequence("nodes"):
        name = v.obj["metadata"]["name"]
        if v.deleted == there.get(name, False) and v.lo <= t < v.hi:
            raise UndecidedError(f"node {name} may exist")
        if v.hi <= t:
            there[name] = not v.deleted
    return {name for name, is_there in there.items() if is_there}
