"""Recordings of an observer that was interrupted, or started again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from tests.oracle.world import RESOURCES, Obj, key_of

Entries = list[Obj]
Differs = Callable[[Obj], bool]  # whether the truth about an expectation is another one than in the original
CHANGES = ("ADDED", "MODIFIED", "DELETED")
KINDS = tuple(sorted(RESOURCES))


def is_change(entry: Obj) -> bool:
    return entry["kind"] in RESOURCES and entry.get("type") in CHANGES


def somewhen(entries: Entries, r: Random) -> float:
    """A moment shortly before a change, or any."""
    steps = [e["t"] for e in entries if e["kind"] == "action"]
    changes = [e["t"] for e in entries if e["kind"] in ("pods", "nodes") and is_change(e) and e["t"] > steps[0] - 5]
    some = float(r.choice(changes or steps) - r.choice((0.01, 0.3, 1.0, 3.0)))
    return float(max(some, entries[0]["t"] + 2))


def declared_gap(entries: Entries, r: Random) -> tuple[Entries, Differs | None]:
    """Some watches are interrupted, and begin again with a list."""
    kinds = set(r.sample(KINDS, r.randint(1, 3))) | {r.choice(("pods", "nodes", "events", "leases"))}
    return _gap(entries, r, kinds, hosts=r.random() < 0.3), None


def restart(entries: Entries, r: Random) -> tuple[Entries, Differs | None]:
    """The observer starts again: nothing is observed for a while."""
    return _gap(entries, r, set(RESOURCES), hosts=True), None


def _gap(entries: Entries, r: Random, kinds: set[str], *, hosts: bool) -> Entries:
    begin, lasting = somewhen(entries, r), r.choice((0.3, 2.0, 8.0, 20.0))
    end = min(begin + lasting, entries[-1]["t"])
    kinds = {k for k in kinds if any(e["kind"] == k and e["t"] < begin for e in entries)}
    known: dict[tuple[str, str], Obj] = {}
    at_end: dict[tuple[str, str], Obj] = {}
    for entry in entries:
        if entry["kind"] in kinds and entry.get("type") != "BOOKMARK" and entry["t"] <= end:
            key = (entry["kind"], entry["object"]["metadata"].get("uid") or key_of(entry["kind"], entry["object"])[1])
            for state in (known, at_end) if entry["t"] < begin else (at_end,):
                state.pop(key, None)
                if entry["type"] != "DELETED":
                    state[key] = entry["object"]

    def hidden(entry: Obj) -> bool:
        source = entry["type"] if entry["kind"] == "current" else entry["kind"]
        is_host = hosts and entry["kind"] in ("host", "metrics", "probe") and entry.get("type") != "configz"
        return (source in kinds or is_host) and begin <= entry["t"] <= end

    seen = [e for e in entries if not hidden(e)]
    added: Entries = []
    nodes = {e["node"] for e in entries if e["kind"] == "host" and e.get("node")} if hosts else set()
    for source in sorted(
        kinds | {f"host@{n}" for n in nodes} | {f"metrics@{n}" for n in nodes} | ({"probe@shop"} if hosts else set())
    ):
        window: Obj = {"from": begin, "to": None, "reason": "the watch was interrupted"}
        changed = [k for k in known.keys() | at_end.keys() if k[0] == source and known.get(k) != at_end.get(k)]
        entry = {"t": begin, "kind": "blind", "type": source, "object": window}
        entry |= {"node": source.partition("@")[2]} if source.partition("@")[2] in nodes else {}
        added.append(entry)
        closed = {**window, "to": end}
        if "@" not in source:
            closed["changed"] = sorted(k[1] for k in changed)
        added += _list(source, known, at_end, end)
        added.append({**entry, "t": end, "object": closed})
    return sorted([*seen, *added], key=lambda e: e["t"])


def _list(kind: str, known: dict[tuple[str, str], Obj], at_end: dict[tuple[str, str], Obj], t: float) -> Iterable[Obj]:
    """The new list, and the deletions that follow from it."""
    for key, obj in known.items():
        if key[0] == kind and key not in at_end:
            note = "deduced: it is missing in a new list"
            yield {"t": t, "kind": kind, "type": "DELETED", "object": obj, "note": note}
    for key, obj in at_end.items():
        if key[0] == kind:
            yield {"t": t, "kind": kind, "type": "LIST", "object": obj}
