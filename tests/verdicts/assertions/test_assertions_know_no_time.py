"""Assertions say what is true of a state; when something was is the engine's business.

Those that compare moments themselves ask about moments: of readings, which count until the next one, or of one node's
own clock. The list may get shorter.
"""

from __future__ import annotations

import ast
from pathlib import Path

import chaos.verdicts.assertions

_MOMENTS = frozenset(
    {"t", "earliest", "latest", "lo", "hi", "began", "anchor", "since", "first_time", "until", "begin", "end", "start"}
)
_ASKS_ABOUT_MOMENTS = {
    "_pods": "whether a set that is formed now is empty because it is too early",
    "_replicas": "scrapes since a moment",
    "at_most_one": "which of an end and a start of containers, read on hosts, came first",
    "endpoint_available": "how long an answer counts",
    "event": "when an Event was stored at the earliest",
    "eviction_refused": "requests since a step, and their answers",
    "expression": "states of several resources that are put together",
    "grace_respected": "how long a pod took to end, by its node's clock",
    "inhibitor_held": "readings around the start of a step",
    "lease_fresh": "how old a renewal is",
    "metric": "readings since a moment",
    "node_rebooted": "readings of boots before and after a moment",
    "pods_started": "starts since a moment",
    "shutdown_metrics": "times that are the values of gauges",
    "termination_order": "in which order pods ended, by their node's clock",
}


def _compares_moments(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        is_comparison = isinstance(node, ast.Compare) and any(
            isinstance(each, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for each in node.ops
        )
        is_choice = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max")
        if is_comparison or is_choice:
            names = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
            names |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            if names & _MOMENTS:
                return True
    return False


def test_the_others_compare_no_moments() -> None:
    (folder,) = chaos.verdicts.assertions.__path__
    found = {path.stem for path in Path(folder).glob("*.py") if _compares_moments(path)}
    assert found == set(_ASKS_ABOUT_MOMENTS)
