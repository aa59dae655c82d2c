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

from chaos.model.labels import LOCK_NAME

LEASE_DURATION = 30.0  # seconds without renewal after which somebody else may take it
RENEW_DEADLINE = 20.0  # seconds after the begin of a renewal in which its holder may act
RETRY_PERIOD = 8.0  # seconds between two renewals
ABORT = "nodefall.dev/abort"  # annotation: why the holder should stop
MACHINE = "nodefall.dev/machine"


class LeaseRecord(Struct, frozen=True):
    """The Lease as it was read; ``holder`` is "" where nobody has it."""

    version: str  # resourceVersion
    holder: str = ""
    fence: int = 0
    duration: float = LEASE_DURATION
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

    def is_recent(self, wall: float) -> bool:
        """By two clocks: for people, and to know whether it is worth waiting."""
        return self.age(wall) < self.duration


class Decision(Enum):
    """What somebody who wants the lock should do."""

    ACQUIRE = "take"
    WAIT = "watch"


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """A record, and when the watcher first saw it on its own monotonic clock."""

    version: str
    observed_at: float


def observe(record: LeaseRecord, before: ObservedLease | None, now: float) -> ObservedLease:
    """Go on watching, or begin anew where the record has changed."""
    return before if before and before.version == record.version else ObservedLease(record.version, now)


def decide(
    record: LeaseRecord | None, observed: ObservedLease | None, now: float, *, holder_dead: bool = False
) -> Decision:
    """``dead``: the holder is known to have ended, as it was on this machine and its file lock is free."""
    if record is None or not record.holder or holder_dead:
        return Decision.ACQUIRE
    if observed and observed.version == record.version and now - observed.observed_at > record.duration:
        return Decision.ACQUIRE
    return Decision.WAIT


@dataclass(frozen=True, slots=True)
class Leadership:
    """Holding the lock: ``since`` is when the last renewal that worked was begun, on the holder's monotonic clock."""

    holder: str
    fence: int
    renewed_at: float

    def is_valid(self, now: float) -> bool:
        return now - self.renewed_at < RENEW_DEADLINE

    def is_held(self, record: LeaseRecord | None) -> bool:
        return record is not None and (record.holder, record.fence) == (self.holder, self.fence)


def parse(lease: dict[str, Any]) -> LeaseRecord:
    """From the API's JSON. What is missing counts as not given."""
    metadata, spec = lease.get("metadata") or {}, lease.get("spec") or {}
    return LeaseRecord(
        version=str(metadata.get("resourceVersion", "")),
        holder=spec.get("holderIdentity") or "",
        fence=int(spec.get("leaseTransitions") or 0),
        duration=float(spec.get("leaseDurationSeconds") or LEASE_DURATION),
        renewed=spec.get("renewTime") or "",
        annotations=metadata.get("annotations") or {},
    )


def lease_body(
    namespace: str, holder: str, fence: int, wall: float, about: dict[str, str], version: str = ""
) -> dict[str, Any]:
    """The Lease to write; with ``version`` only over exactly that one. ``wall`` is the time since the epoch."""
    metadata: dict[str, Any] = {"name": LOCK_NAME, "namespace": namespace, "annotations": about}
    if version:
        metadata["resourceVersion"] = version
    stamp = datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": int(LEASE_DURATION),
        "leaseTransitions": fence,
        "renewTime": stamp,
    }
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
