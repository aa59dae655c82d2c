"""Recordings as an imperfect observer would have made them: what they say is true, and less than the original says."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from tests.oracle.clocks import clocks_off, shifted
from tests.oracle.gaps import KINDS, Differs, Entries, declared_gap, is_change, restart, somewhen
from tests.oracle.pods import PRESETS
from tests.oracle.question import ON_API
from tests.oracle.world import RESOURCES, Obj, get

OF_SETS = {"pods", "grace-respected", "workload-available", "volume-attached", "inhibitor-held", *PRESETS}


def copied(entries: Entries) -> Entries:
    found: Entries = json.loads(json.dumps(entries))
    return found


def is_eternal(entry: Obj) -> bool:
    """A proof for all times, as a lab in one process gives it: its watches are never late."""
    return bool(entry["kind"] == "current" and entry["object"]["until"] > entry["t"] + 1e6)


def proven(entries: Entries) -> Entries:
    """A recording without proofs, whose receipts are exact, with proofs every 5 s and at each action."""
    entries = [e for e in entries if not is_eternal(e)]
    if any(e["kind"] == "current" for e in entries):
        return entries
    kinds = sorted({e["kind"] for e in entries if e["kind"] in RESOURCES})
    listed = {k: max(e["t"] for e in entries if e["kind"] == k and e["type"] == "LIST") for k in kinds
              if any(e["kind"] == k and e["type"] == "LIST" for e in entries)}  # fmt: skip
    moments = {e["t"] for e in entries if e["kind"] == "action"} | {entries[-1]["t"]}
    t = entries[0]["t"]
    while t < entries[-1]["t"]:
        moments.add(t)
        t += 5
    blind = [(e["type"], e["object"]["from"], e["object"]["to"] or 9e99) for e in entries if e["kind"] == "blind"]
    proofs, newest, i = [], {True: 0, False: 0}, 0
    for moment in sorted(moments):
        while i < len(entries) and entries[i]["t"] <= moment:
            entry = entries[i]
            if entry["kind"] in RESOURCES:
                is_event = entry["kind"] == "events"
                revision = int(get(entry, "object", "metadata", "resourceVersion") or 0)
                newest[is_event] = max(newest[is_event], revision)
            i += 1
        for kind in kinds:
            if moment < listed.get(kind, 9e99) or any(k == kind and a <= moment <= b for k, a, b in blind):
                continue
            said = {"until": moment, "complete": moment, "read": moment, "version": str(newest[kind == "events"])}
            proofs.append({"t": moment, "kind": "current", "type": kind, "object": said})
    return sorted([*entries, *proofs], key=lambda e: e["t"])


def received_later(entries: Entries, later: Callable[[Obj], float]) -> Entries:
    """Each change of an object so much later; proofs name what the watch has not delivered when they are made."""
    entries = proven(entries)
    newest: dict[str, float] = {}
    moved: list[tuple[float, int, Obj]] = []
    for i, entry in enumerate(entries):
        t = entry["t"]
        if is_change(entry):
            t = newest[entry["kind"]] = max(newest.get(entry["kind"], 0.0), t + later(entry))
        moved.append((t, i, entry))
    end = entries[-1]["t"]
    delivered = {i: t for t, i, _ in moved}
    for i, entry in enumerate(entries):
        if entry["kind"] == "current":
            _say_behind(entries, entry, [j for j in range(i) if delivered[j] > entry["t"]])
    found = []
    for t, _, entry in sorted(moved, key=lambda m: (m[0], m[1])):
        entry["t"] = t
        if t <= end:
            found.append(entry)
    return found


def _say_behind(entries: Entries, proof: Obj, late: list[int]) -> None:
    """Make a proof that was true again, now that some entries before it come later."""
    mine = [j for j in late if entries[j]["kind"] == proof["type"]]
    if not mine:
        return
    said = proof["object"]
    uids = {entries[j]["object"]["metadata"].get("uid") for j in mine}
    said["behind"] = sorted({*(said.get("behind") or ()), *uids})
    earlier = [e["object"].get("complete_was", e["object"].get("complete")) for e in entries[: min(mine)]
               if e["kind"] == "current" and e["type"] == proof["type"]]  # fmt: skip
    if said.get("complete") is not None:
        said["complete_was"] = said["complete"]
        said["complete"] = min(said["complete"], max((c for c in earlier if c is not None), default=entries[0]["t"]))


def late_watch(entries: Entries, r: Random) -> tuple[Entries, Differs | None]:
    """Some watches stall for a while."""
    kinds = set(r.sample(KINDS, r.randint(1, 4))) | {r.choice(("pods", "nodes", "leases", "events"))}
    begin, lasting = somewhen(entries, r), r.choice((0.5, 2.0, 6.0, 15.0))

    def later(entry: Obj) -> float:
        inside = entry["kind"] in kinds and begin <= entry["t"] < begin + lasting
        return begin + lasting - entry["t"] if inside else 0.0

    return _without_marks(received_later(entries, later)), None


def slow_watches(entries: Entries, r: Random) -> tuple[Entries, Differs | None]:
    """Some watches are late all the time."""
    delays = {kind: r.choice((0.0, 0.2, 1.0, 3.0)) * r.random() for kind in KINDS}
    return _without_marks(received_later(entries, lambda e: delays[e["kind"]])), None


def equal_times(entries: Entries, r: Random) -> tuple[Entries, Differs | None]:
    """Changes are read in batches, and those of different watches in any order."""
    entries = proven(entries)
    found: Entries = []
    batch: Entries = []
    length = r.choice((0.04, 0.1, 0.5))

    def flush() -> None:
        order = {kind: r.random() for kind in KINDS}
        for entry in sorted(batch, key=lambda e: order[e["kind"]]):
            found.append({**entry, "t": batch[-1]["t"]})
        batch.clear()

    for entry in entries:
        if batch and (not is_change(entry) or entry["t"] > batch[0]["t"] + length):
            flush()
        if is_change(entry):
            batch.append(entry)
        else:
            found.append(entry)
    if batch:
        flush()
    return found, None


def _without_marks(entries: Entries) -> Entries:
    for entry in entries:
        if entry["kind"] == "current":
            entry["object"].pop("complete_was", None)
    return entries


def lost_versions(entries: Entries, r: Random) -> tuple[Entries, Differs | None]:
    """A gap without a blind window: versions of some objects vanish, which later reads know."""
    entries = proven(entries)
    kinds = {r.choice(("pods", "nodes", "leases", "pods", "nodes", "statefulsets", "deployments"))}
    begin, lasting = somewhen(entries, r), r.choice((0.5, 3.0, 10.0))
    gone = [
        i for i, e in enumerate(entries) if is_change(e) and e["kind"] in kinds and begin <= e["t"] < begin + lasting
    ]
    if not gone:
        return entries, None
    for i, proof in enumerate(entries):
        if proof["kind"] != "current" or proof["type"] not in kinds:
            continue
        before = [j for j in gone if j < i]
        if before:
            received = {}
            for j, e in enumerate(entries[:i]):
                if is_change(e) and e["kind"] in kinds and j not in gone:
                    received[_uid(e)] = j
            uids = {_uid(entries[j]) for j in before if received.get(_uid(entries[j]), -1) < j}
            _say_behind(entries, proof, before)
            proof["object"]["behind"] = sorted(uids)
    lost = set(gone)
    return _without_marks([e for i, e in enumerate(entries) if i not in lost]), None


def _uid(entry: Obj) -> str:
    return str(entry["object"]["metadata"].get("uid"))


def cut_tail(entries: Entries, r: Random) -> tuple[Entries, Differs | None]:
    """The recording ends earlier, mostly after the last proof of a step."""
    steps = [
        e["t"] for e in entries if e["kind"] == "action" and e["object"]["phase"] in ("returned", "proved", "begin")
    ]
    least = max(steps) if r.random() < 0.8 else min(steps)
    end = r.uniform(least, entries[-1]["t"])
    return [e for e in entries if e["t"] <= end], None


def duplicates(entries: Entries, r: Random) -> tuple[Entries, Differs | None]:
    """Some changes are delivered twice."""
    found = []
    for entry in entries:
        found += [entry, entry] if is_change(entry) and r.random() < 0.1 else [entry]
    return found, None


def fewer_proofs(entries: Entries, r: Random) -> tuple[Entries, Differs | None]:
    """Proofs that were not made; of each resource one is left."""
    share, seen = r.choice((0.3, 0.6, 0.95)), set()
    found = []
    for entry in proven(entries):
        if entry["kind"] == "current" and entry["type"] in seen and r.random() < share:
            continue
        if entry["kind"] == "current":
            seen.add(entry["type"])
        found.append(entry)
    return found, None


def late_requests(entries: Entries, r: Random) -> tuple[Entries, Differs | None]:
    """A request to the API was sent earlier than it was handled, or is answered later."""
    steps = sorted({e["object"]["step"] for e in entries if e["kind"] == "action" and e["type"] in ON_API})
    if not steps:
        return entries, None
    name, by, earlier = r.choice(steps), r.choice((0.4, 1.0, 3.0)), r.random() < 0.5
    for entry in entries:
        obj = entry["object"]
        if entry["kind"] == "action" and obj["step"] == name:
            if earlier and obj["phase"] == "begin":
                entry["t"] = max(entries[0]["t"], entry["t"] - by)
            if earlier and get(obj, "evidence", "fired"):
                obj["evidence"]["fired"] -= by
            if not earlier and obj["phase"] == "returned":
                entry["t"] = min(entry["t"] + by, entries[-1]["t"])

    def differs(expectation: Obj) -> bool:
        text = json.dumps(expectation)
        if earlier:
            return expectation.get("assert") in OF_SETS or "order" in expectation
        return f"end({name})" in text or "order" in expectation

    return sorted(entries, key=lambda e: e["t"]), differs


MUTATIONS: dict[str, Callable[[Entries, Random], tuple[Entries, Differs | None]]] = {
    f.__name__: f
    for f in (
        clocks_off,
        cut_tail,
        declared_gap,
        duplicates,
        equal_times,
        fewer_proofs,
        late_requests,
        late_watch,
        lost_versions,
        restart,
        shifted,
        slow_watches,
    )
}
INTERRUPTED = ("declared_gap", "restart")  # an observer that is interrupted has no proof for all times
SAME = ("shifted",)  # the verdict is the same


def mutate(entries: Entries, kind: str, seed: int) -> tuple[Entries, Differs | None]:
    """The recording with one mutation, sorted by time, and whether the truth about an expectation is another one."""
    entries = copied(entries)
    if kind in INTERRUPTED and any(is_eternal(e) for e in entries):
        entries = proven(entries)
    return MUTATIONS[kind](entries, Random(seed))  # noqa: S311
