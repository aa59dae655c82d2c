"""Reads a recording, and says of each version of an object when it was stored: between ``lo`` and ``hi``."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

Obj = dict[str, Any]
Window = tuple[float, float]
BY_NAME = {"nodes", "leases", "deployments", "statefulsets", "daemonsets"}  # others are known by their uid
RESOURCES = BY_NAME | {"pods", "events", "replicasets", "jobs", "poddisruptionbudgets", "endpointslices"}
RESOURCES |= {"persistentvolumeclaims", "volumeattachments"}


def read(path: Path) -> list[Obj]:
    """The entries of a recording, in its order."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write(path: Path, entries: list[Obj]) -> None:
    """Write a recording."""
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as out:
        out.writelines(json.dumps(entry) + "\n" for entry in entries)


def get(obj: Any, *path: str) -> Any:
    """A field below ``obj``, None if it or anything above it is missing."""
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def key_of(kind: str, obj: Obj) -> tuple[str, str]:
    """What makes two versions those of one object."""
    meta = obj["metadata"]
    return (kind, f"{meta.get('namespace', '')}/{meta['name']}" if kind in BY_NAME else meta.get("uid", ""))


@dataclass(frozen=True, slots=True)
class Version:
    """A version, its place in the order of the store, and the bounds of the moment at which it was stored."""

    kind: str
    key: tuple[str, str]
    obj: Obj
    order: float  # the resourceVersion
    lo: float
    hi: float
    deleted: bool = False
    deduced: bool = False  # the deletion was not seen
    listed: bool = False  # of the first list
    received: float = 0.0


@dataclass(slots=True)
class Step:
    """A step: when nodefall began it, and when it began for what counts from it."""

    name: str
    action: str
    nodes: list[str] = field(default_factory=list)
    params: Obj = field(default_factory=dict)
    sent: list[float] = field(default_factory=list)
    fired: list[float] = field(default_factory=list)
    returned: list[float] = field(default_factory=list)
    proved: list[float] = field(default_factory=list)
    answers: list[Obj] = field(default_factory=list)  # evidence of "returned", with t and the node


class World:
    """All that a recording says, with bounds."""

    def __init__(self, entries: list[Obj]) -> None:
        self.entries = entries
        self.start: float = entries[0]["t"]
        self.end: float = max(e["t"] for e in entries)
        self.meta: Obj = entries[0].get("object") or {}
        self.current = [e for e in entries if e["kind"] == "current"]
        self.proven = bool(self.current)
        self.listed: dict[str, float] = {}  # when a kind was first known completely
        closed: set[str] = set()
        for entry in entries:
            kind, t = entry["kind"], entry["t"]
            if kind == "current":
                self.listed.setdefault(entry["type"], t)
                closed.add(entry["type"])
            elif entry.get("type") == "LIST" and kind not in closed and t < self.listed.get(kind, 9e99) + 5:
                self.listed[kind] = t
            else:
                closed.add(kind)
        self._sequences: dict[tuple[str, ...], list[Version]] = {}

    @cached_property
    def steps(self) -> dict[str, Step]:
        """The recorded steps by name."""
        steps: dict[str, Step] = {}
        for entry in self.entries:
            if entry["kind"] != "action":
                continue
            obj, node, t = entry["object"], entry.get("node") or "", entry["t"]
            step = steps.setdefault(obj["step"], Step(obj["step"], entry["type"], params=obj.get("params") or {}))
            if obj["phase"] == "begin":
                step.nodes.append(node)
                step.sent.append(t)
            elif obj["phase"] == "returned":
                step.returned.append(t)
                evidence = obj.get("evidence") or {}
                step.fired.append(evidence.get("fired") or t)
                if not evidence.get("fired"):
                    step.fired.pop()
                step.answers.append({"t": t, "node": node, "delivery": obj.get("delivery"), **evidence})
            elif obj["phase"] in ("proved", "undone"):
                step.proved.append(t)
        return steps

    @cached_property
    def blind(self) -> dict[str, list[tuple[float, float, list[str] | None]]]:
        """Blind windows by source, with the uids that changed."""
        windows: dict[tuple[str, float], tuple[float, list[str] | None]] = {}
        for entry in self.entries:
            if entry["kind"] == "blind":
                obj = entry["object"]
                end = math.inf if obj["to"] is None else obj["to"]
                windows[entry["type"], obj["from"]] = (end, obj.get("changed"))
        found: dict[str, list[tuple[float, float, list[str] | None]]] = {}
        for (source, begin), (end, changed) in windows.items():
            found.setdefault(source, []).append((begin, end, changed))
        return found

    def masks(self, *sources: str, uid: str | None = None) -> list[Window]:
        """When versions of these sources may be missing; with ``uid``, of one object only."""
        masks = []
        for source in sources:
            for begin, end, changed in self.blind.get(source, []):
                if uid is None or changed is None or uid in changed:
                    masks.append((begin, end))
            if source in RESOURCES:
                masks.append((-math.inf, self.listed.get(source, math.inf)))
                masks.append((self.horizon(source, uid), math.inf))
                masks += [(a, b) for a, b, of in self.lost.get(source, []) if uid in (None, of)]
        masks.append((self.end, math.inf))
        return sorted(masks)

    def horizon(self, kind: str, uid: str | None) -> float:
        """Until when everything of the kind is known: of an object (``until``), or of sets (``complete``)."""
        if not self.proven:
            return self.end
        found: float = self.listed.get(kind, math.inf)
        for entry in self.current:
            if entry["type"] == kind:
                obj = entry["object"]
                if uid is None:
                    found = max(found, obj.get("complete") or -math.inf)
                elif uid not in (obj.get("behind") or ()):
                    found = max(found, obj["until"])
        return found

    @cached_property
    def lost(self) -> dict[str, list[tuple[float, float, str]]]:
        """Losses of single objects: a read knew a newer version than the watch, and the next one is newer still."""
        lost: dict[str, list[tuple[float, float, str]]] = {}
        for entry in self.current:
            kind, obj = entry["type"], entry["object"]
            for uid in obj.get("behind") or ():
                versions = [v for v in self.sequence(kind) if v.obj["metadata"].get("uid") == uid]
                before = [v for v in versions if v.received <= entry["t"]]
                after = [v for v in versions if v.received > entry["t"]]
                known = float(obj["version"]) if obj.get("version") else -math.inf
                if after and after[0].order <= known:
                    continue
                begin = before[-1].lo if before else -math.inf
                lost.setdefault(kind, []).append((begin, after[0].hi if after else math.inf, uid))
        return lost

    def sequence(self, *kinds: str) -> list[Version]:
        """The versions of these kinds in the order of the store, the first lists at the start; bounds never go back."""
        if kinds not in self._sequences:
            found = sorted((v for kind in kinds for v in self._bounded(kind)), key=lambda v: v.order)
            found.sort(key=lambda v: not v.listed)
            self._sequences[kinds] = self._in_order(found)
        return self._sequences[kinds]

    def _in_order(self, found: list[Version]) -> list[Version]:
        """With bounds that follow from the order."""
        lows, highs = [v.lo for v in found], [v.hi for v in found]
        if self.proven:
            for i in range(1, len(found)):
                lows[i] = max(lows[i], lows[i - 1])
            for i in range(len(found) - 2, -1, -1):
                highs[i] = min(highs[i], highs[i + 1])
        else:  # receipts of several watches: whatever the order of two of them
            for i in range(1, len(found)):
                highs[i] = max(highs[i], highs[i - 1])
            for i in range(len(found) - 2, -1, -1):
                lows[i] = min(lows[i], lows[i + 1])
        return [replace(v, lo=min(lo, hi), hi=hi) for v, lo, hi in zip(found, lows, highs, strict=True)]

    @cached_property
    def _reads(self) -> list[tuple[float, float]]:
        """(version, moment): what has a higher one happened after the moment."""
        objects = [e["object"] for e in self.current if e["type"] != "events" and e["object"].get("version")]
        return sorted((float(o["version"]), o.get("read") or o["until"]) for o in objects)

    def _bounded(self, kind: str) -> Iterator[Version]:
        """The versions of a kind, each once, with the bounds that its receipt and the proofs give."""
        seen: set[tuple[tuple[str, str], str, bool]] = set()
        orders: dict[tuple[str, str], float] = {}
        first, newest = self.listed.get(kind, math.inf), 0.0
        general, proofs = -math.inf, list[tuple[float, set[str]]]()
        for entry in self.entries:
            if entry["kind"] == "current" and entry["type"] == kind:
                obj = entry["object"]
                proofs.append((obj["until"], set(obj.get("behind") or ())))
                general = max(general, obj.get("complete") or -math.inf)
            if entry["kind"] in RESOURCES and (kind == "events") == (entry["kind"] == "events"):
                newest = max(newest, float(get(entry, "object", "metadata", "resourceVersion") or 0))
            if entry["kind"] != kind or entry["type"] == "BOOKMARK":
                continue
            obj, t = entry["object"], entry["t"]
            key, revision = key_of(kind, obj), obj["metadata"].get("resourceVersion") or "0"
            deleted = entry["type"] == "DELETED"
            if (key, revision, deleted) in seen:
                continue
            seen.add((key, revision, deleted))
            listed = entry["type"] == "LIST" and t <= first
            order, deduced = float(revision), deleted and bool(entry.get("note"))
            if deduced or (deleted and order <= orders.get(key, -1)):
                order = max(newest, order) + 0.5
            orders[key] = max(order, orders.get(key, -1))
            lo = t if not self.proven else max(self.start, general)
            if self.proven:
                uid = obj["metadata"].get("uid")
                lo = max([lo, *(until for until, behind in proofs if uid not in behind)])
                if kind != "events":
                    lo = max([lo, *(moment for version, moment in self._reads if version < order and not deduced)])
            lo = -math.inf if listed else min(lo, t)
            lost = [
                a for a, b, _ in self.blind.get(kind, []) if a <= t <= b or (b < t < b + 5 and entry["type"] == "LIST")
            ]
            yield Version(kind, key, obj, order, min([lo, *lost]), t, deleted, deduced, listed, t)
