"""The cluster's lock, as decisions about one Lease (pure), and the requests about it.

Clocks of different machines are never compared. A lock has expired when its record did not change for its whole
duration on the observer's own clock, and its holder acts only in the first part of that duration, counted from before
the renewal (as client-go's leaderelection does). So no two holders act at once, however long a process is stopped or a
request takes. Both clocks continue while their machine is suspended.

``leaseTransitions`` is the fencing number: it rises with each holder as long as the Lease exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from msgspec import Struct

from chaos.cluster.errors import check_success, decode_success
from chaos.core.api_path import resource_path
from chaos.core.command import MERGE_PATCH
from chaos.core.labels import LOCK_NAME
from chaos.core.ports import KubeApi

LEASE_DURATION = 30.0  # seconds without renewal after which another process may acquire the lock
RENEW_DEADLINE = 20.0  # seconds after the start of a renewal in which the holder may act
RETRY_PERIOD = 8.0  # seconds between two renewals
MAX_DURATION = 600.0  # seconds, whatever the Lease says; of nodefall it is LEASE_DURATION
_MAX_FENCE = 2**31 - 1  # of the API
_MAX_TEXT = 500  # characters of what anyone may have written
ABORT = "nodefall.dev/abort"  # annotation: why the holder should stop
PROCESS = "nodefall.dev/process"  # annotation: identity of the holder's process
_CONFLICT, _NOT_FOUND = 409, 404
_LOCK = "the cluster's lock cannot be"


class LeaseRecord(Struct, frozen=True):
    """A Lease that was read; ``holder`` is "" if the lock is free."""

    version: str  # resourceVersion
    holder: str = ""
    fence: int = 0
    duration: float = LEASE_DURATION
    renewed: str = ""  # by the holder's clock: for people only
    annotations: dict[str, str] = {}

    @property
    def abort(self) -> str:
        """Why the holder is requested to stop, or ""."""
        return self.annotations.get(ABORT, "")

    @property
    def process(self) -> str:
        """The identity of the holder's process, or ""."""
        return self.annotations.get(PROCESS, "")

    def age(self, wall: float) -> float:
        """Seconds since the renewal, by the holder's clock and by ours; very large if the time is unknown."""
        try:
            return wall - datetime.fromisoformat(self.renewed).astimezone(UTC).timestamp()
        except (ValueError, OverflowError):  # anyone may have written it
            return wall

    def is_recent(self, wall: float) -> bool:
        """Whether the lock seems to be renewed, by two clocks: for people."""
        return self.age(wall) < self.duration

    def is_surely_recent(self, wall: float) -> bool:
        """Whether two clocks that agree show a renewal just now; if not, the lock is worth watching."""
        return abs(self.age(wall)) < self.duration


class Decision(Enum):
    """The next step of a process that wants the lock."""

    ACQUIRE = "acquire"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """A version of the Lease, and when it was first observed on the observer's clock since boot."""

    version: str
    observed_at: float


def observe(record: LeaseRecord, before: ObservedLease | None, now: float) -> ObservedLease:
    """The observation so far, or a new one if the record has changed."""
    return before if before and before.version == record.version else ObservedLease(record.version, now)


def decide(
    record: LeaseRecord | None, observed: ObservedLease | None, now: float, *, holder_dead: bool = False
) -> Decision:
    """``holder_dead``: exactly the process that holds the lock has provably ended."""
    if record is None or not record.holder or holder_dead:
        return Decision.ACQUIRE
    if observed and observed.version == record.version and now - observed.observed_at > record.duration:
        return Decision.ACQUIRE
    return Decision.WAIT


@dataclass(frozen=True, slots=True)
class Leadership:
    """A held lock. ``renewed_at`` is the start of the last successful renewal, on the holder's clock since boot."""

    holder: str
    fence: int
    renewed_at: float

    def is_valid(self, now: float) -> bool:
        return now - self.renewed_at < RENEW_DEADLINE

    def is_held(self, record: LeaseRecord | None) -> bool:
        return record is not None and (record.holder, record.fence) == (self.holder, self.fence)


def next_fence(record: LeaseRecord | None, leadership: Leadership | None) -> int:
    """The fencing number to write over ``record``: its own in a renewal, the next one in a takeover."""
    if leadership is not None and leadership.is_held(record):
        return leadership.fence
    former = record.fence if record else 0
    return former + 1 if former < _MAX_FENCE else 1


def describe_loss(record: LeaseRecord | None) -> str:
    """Describe the holder of a lock that was lost."""
    if record is None:
        return "the cluster's lock was deleted"
    if not record.holder:
        return "the cluster's lock was released by another process"
    return f"the cluster's lock was taken by {record.holder}"


def parse(lease: dict[str, Any]) -> LeaseRecord:
    """The record in the API's JSON; missing fields have their defaults.

    Anybody may have written it: it lasts no shorter than nodefall's, and not for ever.
    """
    metadata, spec = lease.get("metadata") or {}, lease.get("spec") or {}
    return LeaseRecord(
        version=str(metadata.get("resourceVersion", "")),
        holder=(spec.get("holderIdentity") or "")[:_MAX_TEXT],
        fence=int(spec.get("leaseTransitions") or 0),
        duration=min(max(float(spec.get("leaseDurationSeconds") or 0), LEASE_DURATION), MAX_DURATION),
        renewed=spec.get("renewTime") or "",
        annotations={key: text[:_MAX_TEXT] for key, text in (metadata.get("annotations") or {}).items()},
    )


def lease_body(
    namespace: str,
    holder: str,
    fence: int,
    wall: float,
    annotations: dict[str, str],
    version: str = "",
    name: str = LOCK_NAME,
) -> dict[str, Any]:
    """The Lease to write, with ``version`` only over exactly that one; ``wall`` in seconds since the epoch."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "annotations": annotations}
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


def read_lock(kube: KubeApi, namespace: str, name: str = LOCK_NAME) -> LeaseRecord | None:
    """The lock, or None. Raises NodefallError."""
    response = kube.request("GET", _path(namespace, name))
    return None if response.status == 404 else parse(decode_success(response, f"{_LOCK} read"))


def write_lock(kube: KubeApi, namespace: str, over: LeaseRecord | None, lease: dict[str, Any]) -> bool:
    """Write the Lease over exactly the record that was read; False if it has changed. Raises NodefallError."""
    if over is None:
        response = kube.request("POST", _collection(namespace), body=lease)
    else:
        response = kube.request("PUT", _path(namespace, lease["metadata"]["name"]), body=lease)
        if response.status == _NOT_FOUND:
            return False
    if response.status == _CONFLICT:
        return False
    check_success(response, f"{_LOCK} written")
    return True


def delete_lock(kube: KubeApi, namespace: str, record: LeaseRecord, name: str = LOCK_NAME) -> bool:
    """Delete exactly the record that was read; whether it is gone. Raises NodefallError."""
    preconditions = {"resourceVersion": record.version}
    body = {"kind": "DeleteOptions", "preconditions": preconditions}
    response = kube.request("DELETE", _path(namespace, name), body=body)
    return response.status in (200, 202, _NOT_FOUND)


def request_abort(kube: KubeApi, namespace: str, why: str) -> None:
    """Annotate the lock; its holder reads the annotation within a second. Raises NodefallError."""
    patch = {"metadata": {"annotations": {ABORT: why}}}
    response = kube.request("PATCH", _path(namespace, LOCK_NAME), body=patch, content_type=MERGE_PATCH)
    check_success(response, f"{_LOCK} annotated")


def _path(namespace: str, name: str) -> str:
    return resource_path("coordination.k8s.io/v1", "leases", namespace, name)


def _collection(namespace: str) -> str:
    return resource_path("coordination.k8s.io/v1", "leases", namespace)
