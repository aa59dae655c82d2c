"""One line of a recording (JSON Lines, gzipped); also what observers emit while a run is live."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType

FORMAT = 1
LIST, ADDED, MODIFIED, DELETED, BOOKMARK = "LIST", "ADDED", "MODIFIED", "DELETED", "BOOKMARK"
# Note on a DELETED line that was not received but deduced from a new list: the last state was not seen.
MISSING_AT_RELIST = "missing at relist"


OVERRIDDEN, WARNINGS = "overruled", "warnings"  # in the meta line: what preflight said, and the run did not heed
TRUNCATED_RECORDING = "recording"  # source of the blind window after a recording that was cut off
# Kinds of windows that are about one node, or one probe.
_SCOPED_KINDS = frozenset({"metrics", "host", "power", "containers", "host-time", "kubelet-journal", "probe"})
# Resources that recordings hold: a window about one of them says nothing about the others.
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


class RecordingEntry(Struct, omit_defaults=True):
    """What was seen at ``t`` (seconds since the epoch, receipt time in the run's clock).

    ``kind`` is ``meta``, a plural resource name, ``metrics``, ``host``, ``action``, ``probe``, ``blind`` or
    ``verdict``; ``object`` is raw JSON until it is decoded by kind.
    A ``blind`` line has type = what could not be seen (see :class:`Blind`), and object {from, to, reason}.
    """

    t: float
    kind: str
    type: str
    object: Raw
    node: str | UnsetType = UNSET
    note: str | UnsetType = UNSET


class ActionPhase(StrEnum):
    """Phase of a step, or of its undo, as an ``action`` entry records it."""

    BEGIN = "begin"
    RETURNED = "returned"
    PROVED = "proved"
    UNDO = "undo"  # the undo begins
    UNDONE = "undone"


class ActionRecord(Struct, omit_defaults=True, frozen=True):
    """Object of an ``action`` line; phase is begin, returned, proved, undo (it begins) or undone."""

    step: str = ""
    phase: str = ""
    params: dict[str, Any] = {}
    command: str = ""
    delivery: str = ""
    exit: int | None = None
    evidence: dict[str, Any] = {}


class ProbeResult(Struct, frozen=True):
    """Object of a ``probe`` line: what a client of the endpoint would have seen. ``status``: of HTTP, else null."""

    ok: bool
    status: int | None = None
    error: str = ""
    seconds: float = 0.0


class Series(Struct, frozen=True):
    """``values`` are (time, value), in the run's clock; null is no number (NaN, infinity)."""

    labels: dict[str, str]
    values: list[tuple[float, float | None]]


class QueryResult(Struct, frozen=True):
    """Object of a ``prometheus`` line: one moment, or the whole run."""

    query: str
    series: list[Series]


class BlindWindow(Struct, frozen=True, rename={"start": "from", "end": "to"}):
    """A time in which something could not be seen.

    ``source`` (the line's type) is a plural resource, ``prometheus``, ``probe@NAME``, or ``metrics``, ``host``,
    ``containers``, ``kubelet-journal`` or ``power`` with ``@NODE``, ``metrics`` also with ``@URL``; without such a name
    it is about all of them.
    ``end`` is None while the window is still open.
    """

    start: float
    end: float | None = None
    reason: str = "no reason was recorded"
    source: str = ""

    def covers(self, wanted: str) -> bool:
        """Whether ``wanted`` could not be seen. What another recorder calls by a name of its own hides everything."""
        kind, _, node = self.source.partition("@")
        if kind in _SCOPED_KINDS:
            return self.source == wanted or (not node and wanted.startswith(f"{kind}@"))
        return self.source == wanted or (kind not in _RESOURCES and kind != TRUNCATED_RECORDING)
