"""Recordings as an imperfect observer would have made them: what they say is true, and less than the original says."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random

from tests.oracle.world import RESOURCES, Obj

Entries = list[Obj]


def shift_all(entries: Entries, by: float) -> Entries:
    """All moments of nodefall's clock, later."""
    found = []
    for entry in copy.deepcopy(entries):
        entry["t"] += by
        if entry.get("since"):
            entry["since"] += by
        obj = entry["object"]
        if entry["kind"] in ("current", "blind"):
            for name in ("until", "complete", "read", "from", "to"):
                if obj.get(name) is not None:
                    obj[name] += by
        if entry["kind"] == "action" and isinstance(obj.get("evidence"), dict):
            evidence = obj["evidence"]
            for name in ("fired", "armed", "began"):
                if evidence.get(name):
                    evidence[name] += by
        found.append(entry)
    return found


def _duplicates(entries: Entries, r: Random) -> Entries:
    found = []
    for entry in entries:
        found.append(entry)
        if entry["kind"] in RESOURCES and entry.get("type") in ("ADDED", "MODIFIED", "DELETED") and r.random() < 0.1:
            found.append(copy.deepcopy(entry))
    return found


MUTATIONS: dict[str, Callable[[Entries, Random], Entries]] = {"duplicates": _duplicates}


def mutate(entries: Entries, kind: str, seed: int) -> Entries:
    """The recording with one mutation, sorted by time."""
    found = MUTATIONS[kind](copy.deepcopy(entries), Random(seed))
    return sorted(found, key=lambda e: e["t"])
