"""Recordings of clusters whose clocks are off, and of later ones."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.oracle.world import RESOURCES, Obj, get

Entries = list[Obj]
ETERNAL = 1e11  # seconds since the epoch
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def clocks_off(entries: Entries, r: Random) -> tuple[Entries, None]:
    """The clocks of all machines, or of some nodes, are off; nodefall measured that, or not."""
    nodes = sorted({e["object"]["metadata"]["name"] for e in entries if e["kind"] == "nodes" and e["type"] == "LIST"})
    chosen = None if r.random() < 0.5 else set(r.sample(nodes, r.randint(1, max(1, len(nodes) - 1))))
    by, measured = r.choice((-30, -12, -5, -1, 1, 2, 8, 30)), r.random() < 0.5
    found = []
    for entry in entries:
        offsets = get(entry, "object", "clockOffsets") if entry["kind"] == "meta" else None
        if offsets is not None:
            if not measured:
                continue
            for source, offset in offsets.items():
                if chosen is None or source.removeprefix("host ") in chosen:
                    offset["seconds"] += by
        if entry["kind"] == "host" and entry["type"] == "host-time" and not measured:
            continue
        found.append(_written_at(entry, chosen, by))
    return found, None


def _written_at(entry: Obj, chosen: set[str] | None, by: int) -> Obj:
    """An entry with the times that a clock wrote which is off."""
    kind, obj = entry["kind"], entry["object"]
    if kind in ("host", "metrics"):
        if chosen is not None and entry.get("node") not in chosen:
            return entry
        return {**entry, "object": _reading(kind, entry.get("type"), obj, by)}
    if kind not in RESOURCES:
        return entry
    meta, later = obj["metadata"], moved(obj, by)
    if chosen is None:
        return {**entry, "object": later}
    if kind == "leases" and meta.get("name") in chosen:
        obj = {**obj, "spec": later["spec"]}
    elif kind == "pods" and get(obj, "spec", "nodeName") in chosen and obj.get("status"):
        obj = {**obj, "status": later["status"]}
    elif kind == "events" and get(obj, "source", "host") in chosen:
        obj = {**later, "metadata": meta}
    return {**entry, "object": obj}


def _reading(kind: str, name: str | None, value: Any, by: int) -> Any:
    if kind == "metrics":
        lines = [str(line).rpartition(" ") for line in value]
        is_time = [a.endswith("_time_seconds") and float(v) > 1e9 for a, _, v in lines]
        return [f"{a} {float(v) + by:.0f}" if t else f"{a} {v}" for (a, _, v), t in zip(lines, is_time, strict=True)]
    if name in ("host-time", "pid1-start") and isinstance(value, int | float):
        return value + by
    if name == "containers" and value:
        return {"running": [{**c, "startedAt": (c.get("startedAt") or 0) + by} for c in value["running"]]}
    if name == "kubelet-journal" and value:
        return {"lines": [{**line, "t": line["t"] + by} for line in value["lines"]]}
    return value


def moved(value: Any, by: float) -> Any:
    """All RFC 3339 times in an object, later."""
    if isinstance(value, dict):
        return {k: moved(v, by) for k, v in value.items()}
    if isinstance(value, list):
        return [moved(v, by) for v in value]
    if isinstance(value, str) and STAMP.fullmatch(value):
        digits = value.partition(".")[2].removesuffix("Z")
        whole = datetime.fromisoformat(value[:19]).replace(tzinfo=UTC) + timedelta(seconds=by)
        return f"{whole:%Y-%m-%dT%H:%M:%S}" + (f".{digits}Z" if digits else "Z")
    return value


def _numbers_moved(value: Any, by: float) -> Any:
    """All numbers that are seconds since the epoch, later."""
    if isinstance(value, dict):
        return {k: _numbers_moved(v, by) for k, v in value.items()}
    if isinstance(value, list):
        return [_numbers_moved(v, by) for v in value]
    return value + by if isinstance(value, int | float) and 1.5e9 < value < 2.1e9 else value


def shifted(entries: Entries, r: Random) -> tuple[Entries, None]:
    """Everything happened later: nothing else changes."""
    by = r.choice((4096, 65536, 1048576))
    found = []
    for entry in entries:
        later = {**_written_at(entry, None, by), "t": entry["t"] + by}
        if later.get("since"):
            later["since"] += by
        obj = entry["object"]
        if entry["kind"] in ("current", "blind"):
            names = ("until", "complete", "read", "from", "to")
            later["object"] = {k: v + by if k in names and v is not None and v < ETERNAL else v for k, v in obj.items()}
        if entry["kind"] == "action" and isinstance(obj.get("evidence"), dict):
            evidence = _numbers_moved(moved(obj["evidence"], by), by)
            later["object"] = {**obj, "evidence": evidence}
        found.append(later)
    return found, None
