"""Entries of a recording (JSON Lines, gzipped), as observers emit them during a run."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from chaos.core.moments import Moment

FORMAT = 1
LIST, ADDED, MODIFIED, DELETED, BOOKMARK = "LIST", "ADDED", "MODIFIED", "DELETED", "BOOKMARK"
ERROR = "ERROR"  # of a watch: its object is a Status, and it is not recorded
# Note of a DELETED entry that was deduced from a new list: the final state was not observed.
MISSING_AT_RELIST = "missing at relist"


# Seconds of cluster time: how long the versions that a consistent read knows are waited for, and what lag is usual.
LAG_BOUND, USUAL_LAG = 60.0, 2.5

# Keys of the meta entry: findings of preflight that the run overrode or ignored.
OVERRIDDEN, WARNINGS = "overridden", "warnings"
SLACK = "slack"  # key of the meta entry: multiplies the durations in deadlines with timing: loose
LOCK_LOSS = "lockLoss"  # key of a later meta entry: why the run was not alone on the cluster
INTERRUPTED_AT = "interruptedAt"  # key of a later meta entry: when someone stopped the run, in epoch seconds
FAILSAFE = "failsafe"  # key of the evidence of a "returned" entry: when the failsafe timer fires, at the earliest
TRUNCATED_RECORDING = "recording"  # source of the blind window after the end of a truncated recording
# Kinds of entries about one node, one probe or one sampled value.
_SCOPED_KINDS = frozenset({"metrics", "host", "power", "containers", "host-time", "kubelet-journal", "probe", "sample"})
# Resources in recordings: a blind window of one of them does not concern the others.
_RESOURCES = frozenset(
    [
        "configmaps",
        "controllerrevisions",
        "cronjobs",
        "daemonsets",
        "deployments",
        "endpoints",
        "endpointslices",
        "events",
        "jobs",
        "leases",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "poddisruptionbudgets",
        "pods",
        "priorityclasses",
        "replicasets",
        "secrets",
        "services",
        "statefulsets",
        "volumeattachments",
        "prometheus",
    ]
)


class EntryKind(StrEnum):
    """Kinds of entries, besides the plural names of resources."""

    META = "meta"
    METRICS = "metrics"
    HOST = "host"
    ACTION = "action"
    PROBE = "probe"
    PROMETHEUS = "prometheus"
    SAMPLE = "sample"  # of an observer of another distribution; its type is what was sampled
    BLIND = "blind"
    CURRENT = "current"
    VERDICT = "verdict"


class RecordingEntry(Struct, omit_defaults=True):
    """An observation at ``t`` (seconds since the epoch, time of receipt by the run's clock).

    ``kind`` is an EntryKind or a plural resource name; ``object`` is raw JSON until it is decoded by kind. The ``type``
    of a ``blind`` entry is its source, as in :class:`BlindWindow`, and its object is {from, to, reason}. ``since``: the
    begin of a reading that took long.
    """

    t: Moment
    kind: str
    type: str
    object: Raw
    node: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    since: Moment | UnsetType = UNSET


class DecodedEntry(RecordingEntry, dict=True):
    """An entry that has its object decoded, too, so that a live run need not decode it again. Made by :meth:`of`."""

    @classmethod
    def of(cls, t: float, kind: str, type_: str, raw: Raw, value: Any) -> DecodedEntry:
        """``value`` must be what ``raw`` would be decoded to."""
        entry = cls(t, kind, type_, raw)
        entry.__dict__["value"] = value
        return entry

    @property
    def value(self) -> Any:
        return self.__dict__["value"]


def moved(entry: RecordingEntry, t: float) -> RecordingEntry:
    """A copy at another time."""
    copy = msgspec.structs.replace(entry, t=t)
    if isinstance(entry, DecodedEntry):
        copy.__dict__.update(entry.__dict__)
    return copy


class ActionPhase(StrEnum):
    """Phase of a step or its undo in an ``action`` entry."""

    BEGIN = "begin"
    RETURNED = "returned"
    PROVED = "proved"
    UNDO = "undo"  # begin of the undo
    UNDONE = "undone"


class ActionRecord(Struct, omit_defaults=True, frozen=True):
    """Object of an ``action`` entry. ``phase`` is an ActionPhase; other recorders may write more."""

    step: str = ""
    phase: str = ""
    params: dict[str, Any] = {}
    command: str = ""
    delivery: str = ""
    exit: int | None = None
    evidence: dict[str, Any] = {}


class ProbeResult(Struct, frozen=True):
    """Object of a ``probe`` entry: the result as for a client of the endpoint. ``status``: of HTTP, else null."""

    ok: bool
    status: int | None = None
    error: str = ""
    seconds: float = 0.0


class Series(Struct, frozen=True):
    """Time series; ``values`` are (time by the run's clock, value), with null for NaN and infinity."""

    labels: dict[str, str]
    values: list[tuple[float, float | None]]


class QueryResult(Struct, frozen=True):
    """Object of a ``prometheus`` entry: an instant, or the range of the whole run."""

    query: str
    series: list[Series]


class Currency(Struct, frozen=True, omit_defaults=True):
    """Object of a ``current`` entry: the watch of the resource (the entry's type) is proven current.

    Every version from before ``until`` is in an earlier entry, except those of the objects with the uids ``behind``,
    and of objects that no list had; every one from before ``complete``, without exception. A version with a
    resourceVersion above ``version`` happened after ``read``.
    """

    until: float
    behind: list[str] = []
    version: str = ""
    complete: float = 0.0
    read: float = 0.0


class BlindWindow(Struct, frozen=True, rename={"start": "from", "end": "to"}):
    """A time during which a source could not be observed.

    ``source`` (the entry's type) is a plural resource, ``prometheus``, ``probe@NAME``, or ``metrics``, ``host``,
    ``containers``, ``kubelet-journal`` or ``power`` with ``@NODE``, ``metrics`` also with ``@URL``; without such a
    suffix all of them are meant.
    ``end`` is None while the window is still open. ``changed``: the uids of the objects that differ before and after
    it, or are on one side only, None if that is unknown; no other object that was known before has changed.
    """

    start: Moment
    end: Moment | None = None
    reason: str = "no reason was recorded"
    source: str = ""
    changed: list[str] | None = None

    @property
    def is_of_readings(self) -> bool:
        """Whether the state after the gap is known only with the next reading, and not at its end."""
        return self.source.partition("@")[0] in (*_SCOPED_KINDS, "prometheus")

    def hides(self, uid: str) -> bool:
        """Whether versions of an object may be lost; of many objects, with an empty ``uid``, they may always."""
        return not uid or self.changed is None or uid in self.changed

    def covers(self, wanted: str) -> bool:
        """Whether the gap applies to the source ``wanted``. The gap of an unknown source applies to all sources."""
        kind, _, node = self.source.partition("@")
        if kind in _SCOPED_KINDS:
            return self.source == wanted or (not node and wanted.startswith(f"{kind}@"))
        return self.source == wanted or (kind not in _RESOURCES and kind != TRUNCATED_RECORDING)
