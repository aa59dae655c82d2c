"""The expressions that the generator writes, each with what it means in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.objects import is_ready
from tests.oracle.pods import is_deleting
from tests.oracle.question import Question, UndecidedError, condition
from tests.oracle.trace import Trace, masked, steps_of
from tests.oracle.world import Obj, get

Lists = dict[str, list[Obj]]
EXPRESSIONS: dict[str, Callable[[Lists, int], bool]] = {
    "nodes.filter(n, !n.ready).size() <= {}": lambda l, n: sum(not is_ready(o) for o in l["nodes"]) <= n,
    "pods.filter(p, p.ready).size() >= {}": lambda l, n: sum(_ready(o) for o in l["pods"]) >= n,
    "pods.filter(p, p.deleting).size() <= {}": lambda l, n: sum(is_deleting(o) for o in l["pods"]) <= n,
    "pods.size() == {}": lambda l, n: len(l["pods"]) == n,
}


def _ready(pod: Obj) -> bool:
    c = condition(pod, "Ready")
    return c is not None and c.get("status") == "True"


def expression(q: Question) -> Trace:
    """One of the expressions above, with its number."""
    text, space = q.params["expression"], q.case.space(q.params.get("namespace"))
    number = "".join(c for c in text.rpartition("=")[2] if c.isdigit())
    holds = EXPRESSIONS.get(text.replace(f"= {number}", "= {}"))
    if holds is None:
        raise UndecidedError("an expression that the generator does not write")
    kind = "nodes" if text.startswith("nodes") else "pods"
    now: dict[Any, Obj] = {}
    rows = []
    for v in q.world.sequence(kind):
        if kind == "pods" and space is not None and get(v.obj, "metadata", "namespace") != space:
            continue
        now.pop(v.key, None)
        if not v.deleted:
            now[v.key] = v.obj
        rows.append((v.lo, v.hi, holds({kind: list(now.values())}, int(number)), v.order))
    return masked(steps_of(rows), q.world.masks(kind))
