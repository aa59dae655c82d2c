"""The expressions that the generator writes, each with what it means in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.podsets import is_deleting
from tests.oracle.question import Question, UndecidedError, is_ready
from tests.oracle.trace import Trace, masked, steps_of
from tests.oracle.world import Obj, get

Lists = dict[str, list[Obj]]
EXPRESSIONS: dict[str, Callable[[Lists, int], bool]] = {
    "nodes.filter(n, !n.ready).size() <= {}": lambda has, n: sum(not is_ready(o) for o in has["nodes"]) <= n,
    "pods.filter(p, p.ready).size() >= {}": lambda has, n: sum(is_ready(o) for o in has["pods"]) >= n,
    "pods.filter(p, p.deleting).size() <= {}": lambda has, n: sum(is_deleting(o) for o in has["pods"]) <= n,
    "pods.size() == {}": lambda has, n: len(has["pods"]) == n,
}


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
