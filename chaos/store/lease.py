"""The cluster's lock, as decisions about one Lease: pure, no I/O.

Clocks of different machines are never compared: a lock is over when its record did not change for its whole duration on
the watcher's own clock, and its holder acts only in the first part of that, counted from before it renewed (as
client-go's leaderelection does). So no two of them act at once, however long a process is stopped or a request takes.
``leaseTransitions`` is the fencing number: it rises with each holder as long as the Lease lives.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from msgspec import Struct

from chaos.model.marks import LOCK

DURATION = 30.0  # seconds without renewal after which somebody else may take it
ACTS = 20.0  # seconds after the begin of a renewal in which its holder may act
RENEW = 8.0  # seconds between two renewals
ABORT = "nodefall.dev/abort"  # annotation: why the holder should stop
MACHINE = "nodefall.dev/machine"


class Record(Struct, frozen=True):
    """The Lease as it was read; ``holder`` is "" where nobody has it."""

    version: str  # resourceVersion
    holder: str = ""
    fence: int = 0
    duration: float = DURATION
    renewed: str = ""  # by the holder's clock: for people only
    annotations: dict[str, str] = {}

    @property
    def abort(self) -> str:
        """Why somebody wants the holder to stop, "" if nobody does."""
        return self.annotations.get(ABORT, "")

    def age(self, wall: float) -> float:
        """Seconds since it was renewed, by the holder's clock and by ours; long ago where it does not say."""
        try:
            return wall - datetime.fromisoformat(self.renewed).astimezone(UTC).timestamp()
        except ValueError:
            return wall

    def seems_alive(self, wall: float) -> bool:
        """By two clocks: for people, and to know whether it is worth waiting."""
        return self.age(wall) < self.duration


class Answer(Enum):
    """What somebody who wants the lock should do."""

    TAKE = "take"
    WATCH = "watch"


@dataclass(frozen=True, slots=True)
class Watched:
    """A record, and when the watcher first saw it on its own monotonic clock."""

    version: str
    since: float


def watch(record: Record, before: Watched | None, now: float) -> Watched:
    """Go on watching, or begin anew where the record has changed."""
    return before if before and before.version == record.version else Watched(record.version, now)


def decide(record: Record | None, watched: Watched | None, now: float, *, dead: bool = False) -> Answer:
    """``dead``: the holder is known to have ended, as it was on this machine and its file lock is free."""
    if record is None or not record.holder or dead:
        return Answer.TAKE
    if watched and watched.version == record.version and now - watched.since > record.duration:
        return Answer.TAKE
    return Answer.WATCH


@dataclass(frozen=True, slots=True)
class Tenure:
    """Holding the lock: ``since`` is when the last renewal that worked was begun, on the holder's monotonic clock."""

    holder: str
    fence: int
    since: float

    def may_act(self, now: float) -> bool:
        return now - self.since < ACTS

    def still_mine(self, record: Record | None) -> bool:
        return record is not None and (record.holder, record.fence) == (self.holder, self.fence)


def parse(lease: dict[str, Any]) -> Record:
    """From the API's JSON. What is missing counts as not given."""
    metadata, spec = lease.get("metadata") or {}, lease.get("spec") or {}
    return Record(
        version=str(metadata.get("resourceVersion", "")),
        holder=spec.get("holderIdentity") or "",
        fence=int(spec.get("leaseTransitions") or 0),
        duration=float(spec.get("leaseDurationSeconds") or DURATION),
        renewed=spec.get("renewTime") or "",
        annotations=metadata.get("annotations") or {},
    )


def body(
    namespace: str, holder: str, fence: int, wall: float, about: dict[str, str], version: str = ""
) -> dict[str, Any]:
    """The Lease to write; with ``version`` only over exactly that one. ``wall`` is the time since the epoch."""
    metadata: dict[str, Any] = {"name": LOCK, "namespace": namespace, "annotations": about}
    if version:
        metadata["resourceVersion"] = version
    stamp = datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": int(DURATION),
        "leaseTransitions": fence,
        "renewTime": stamp,
    }
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
