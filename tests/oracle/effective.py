"""``as: effective``: the API's word and the machine's state."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.oracle.question import Question
from tests.oracle.trace import Value
from tests.oracle.world import Obj, Version, World, get

TAKES_DOWN = {"poweroff", "power-cut", "power-button", "reboot", "hard-reboot", "kernel-crash", "schedule-shutdown"}
AVAILABILITY = {"pods", "pods-rescheduled", "workload-available"}


@dataclass(frozen=True, slots=True)
class Off:
    """A machine was off for certain in [lo, hi), and may have been so from ``since`` to ``back``."""

    since: float
    lo: float
    hi: float
    back: float
    disproven: bool  # a sign of life came between: the power control may be wrong


def is_effective(q: Question) -> bool:
    """Whether the machines count: as the expectation says, else by the switch for questions about availability."""
    said = q.params.get("as")
    return said == "effective" if said else q.case.effective


def outages(world: World, node: str) -> list[Off]:
    """When the power control read the machine as off."""
    signs, readings = _signs(world, node), list[tuple[float, float, bool]]()
    for e in world.entries:
        said = _said_of_power(e) if e.get("node") == node else None
        if said in ("on", "off"):
            readings.append((e.get("since") or e["t"] - 0.5, e["t"], said == "on"))
    found = []
    for i, (_, hi, is_on) in enumerate(readings):
        if is_on or (i and not readings[i - 1][2]):
            continue
        later = [r for r in readings[i:] if r[2]]
        on = later[0][:2] if later else (math.inf, math.inf)
        before = max((lo for lo, end in signs if end <= hi), default=world.start)
        begun = [
            t for s in world.steps.values() if s.action in TAKES_DOWN and node in s.nodes for t in s.sent if t <= hi
        ]
        alive = [s for s in signs if s[0] > hi]
        first = min([on, *alive])
        found.append(Off(min([before, *begun[-1:]]), hi, first[0], first[1], first[1] < on[0]))
    return found


def _said_of_power(entry: Obj) -> object:
    """What a power control said, when it was asked or when it proved a step."""
    if entry["kind"] == "host" and entry["type"] == "machine":
        return entry["object"]
    is_proof = entry["kind"] == "action" and entry["object"].get("phase") == "proved"
    return get(entry["object"], "evidence", "machine") if is_proof else None


def _signs(world: World, node: str) -> list[tuple[float, float]]:
    """Answers of the host and renewals of the Lease; a status of the kubelet comes with them."""
    facts = {"machine", "configz", "machine-addresses"}
    mine = [e for e in world.entries if e["kind"] == "host" and e.get("node") == node and e["type"] not in facts]
    found = [(e.get("since") or e["t"] - 0.5, e["t"]) for e in mine]
    last = None
    for v in world.sequence("leases"):
        if v.obj["metadata"]["name"] == node and not v.deleted:
            renewed = get(v.obj, "spec", "renewTime")
            if renewed != last and not v.listed:
                found.append((v.lo, v.hi))
            last = renewed
    return found


def runs(off: Off | None, t: float) -> Value:
    """Whether a machine with this outage runs at a moment."""
    if off is None or t < off.since or t >= off.back:
        return True
    return None if off.disproven or t < off.lo or t >= off.hi else False


def containers(obj: Obj | None) -> set[tuple[str | None, str | None, int]]:
    statuses = get(obj, "status", "containerStatuses") or ()
    return {(s.get("name"), s.get("containerID"), s.get("restartCount") or 0) for s in statuses}


def ready(world: World, history: list[Version], v: Version, t: float, offs: dict[str, list[Off]]) -> Value:
    """Whether a pod whose version in force says that it is ready is so, by its machine."""
    node = get(v.obj, "spec", "nodeName")
    if not node:
        return True
    if node not in offs:
        offs[node] = outages(world, node)
    for off in offs[node]:
        running = runs(off, t)
        if running is not True:
            return running
        if t < off.since or history[0].lo >= off.back:
            continue
        if off.disproven or v.lo < off.back < v.hi or history[0].hi > off.since:
            return None
        at_off = [w for w in history if w.hi <= off.since]
        if v.hi <= off.back or not containers(v.obj) - containers(at_off[-1].obj):
            return False
    return True
