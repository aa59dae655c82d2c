"""The timeline: all observations in the order of receipt, with a history per object.

Only :meth:`Timeline.add` writes. Assertions never change a timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass, field
from typing import Any, TypeVar

from chaos.core.currency_log import CurrencyLog
from chaos.core.fact import current_fact
from chaos.core.history import Entry, History, Key, Version
from chaos.core.indexes import PodHistories
from chaos.core.kube import (
    EndpointSlice,
    Job,
    Lease,
    Node,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    VolumeAttachment,
    Workload,
    is_helper,
    version_number,
)
from chaos.core.logs import EntryLog, EventLog, Holder, StoredEvent
from chaos.core.packing import FEW, PAUSE, Packer, Packing, Sharing
from chaos.core.recording import ActionRecord, BlindWindow, EntryKind, ProbeResult, QueryResult

__all__ = ["Entry", "Fact", "History", "Key", "ProbeSample", "QuerySample", "Scrape", "Timeline", "Version"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scrape:
    """One scrape of metrics: HTTP status (0 = unreachable) and values by metric name."""

    t: float
    seq: int
    status: int
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Fact:
    """One reading of a fact of a host, or one sample: the value at some moment from ``began`` to ``t``."""

    t: float
    seq: int
    value: Any
    since: float | None = None

    @property
    def began(self) -> float:
        return self.t if self.since is None else self.since


@dataclass(frozen=True, slots=True)
class ProbeSample:
    """One probe of an endpoint; the request began ``result.seconds`` before ``t``."""

    t: float
    seq: int
    result: ProbeResult


@dataclass(frozen=True, slots=True)
class QuerySample:
    """One response of Prometheus."""

    t: float
    seq: int
    result: QueryResult


@dataclass
class Timeline:
    """All entries of a run or recording, in the order of receipt. Times are seconds since the epoch."""

    meta: dict[str, Any] = field(default_factory=dict)
    entries: EntryLog = field(default_factory=EntryLog)
    nodes: dict[str, History[Node]] = field(default_factory=dict)  # by name
    pods: PodHistories = field(default_factory=PodHistories)  # by uid
    leases: dict[str, History[Lease]] = field(default_factory=dict)  # by name
    workloads: dict[tuple[str, str, str], History[Workload]] = field(default_factory=dict)  # plural, ns, name
    jobs: dict[Key, History[Job]] = field(default_factory=dict)
    poddisruptionbudgets: dict[Key, History[PodDisruptionBudget]] = field(default_factory=dict)
    endpointslices: dict[Key, History[EndpointSlice]] = field(default_factory=dict)
    persistentvolumeclaims: dict[Key, History[PersistentVolumeClaim]] = field(default_factory=dict)
    volumeattachments: dict[str, History[VolumeAttachment]] = field(default_factory=dict)  # by name
    events: EventLog = field(default_factory=EventLog)
    metrics: dict[str, list[Scrape]] = field(default_factory=dict)  # by node, or URL of a controller-manager
    host: dict[tuple[str, str], list[Fact]] = field(default_factory=dict)  # (node, fact)
    probes: dict[str, list[ProbeSample]] = field(default_factory=dict)  # by name of the probe
    prometheus: dict[str, list[QuerySample]] = field(default_factory=dict)  # by name of the query
    sampled: dict[str, list[Fact]] = field(default_factory=dict)  # of observers of plug-ins, by what was sampled
    actions: list[tuple[Entry, ActionRecord]] = field(default_factory=list)
    blind_windows: list[BlindWindow] = field(default_factory=list)
    currency: CurrencyLog = field(default_factory=CurrencyLog)
    recent: list[tuple[History[Any], int]] = field(default_factory=list)  # versions that a proof may still narrow
    start: float = 0.0
    end: float = 0.0
    pause: InitVar[float] = PAUSE  # seconds after which what no one asks for is packed
    few: InitVar[int] = FEW  # entries up to which nothing is

    def __post_init__(self, pause: float, few: int) -> None:
        self._packing = Packing(pause, few)
        self._packers: dict[type, Packer] = {}  # of versions, by the type of the object
        self.sharing = Sharing()
        self.events.packer = self._packing.packer(StoredEvent)

    def add(self, entry: Entry) -> None:
        """Append one entry. Entries must be in order of time."""
        if not self.entries:
            self.start = entry.t
        self.end = max(self.end, entry.t)
        self._packing.advance(self.end)
        adder = _ADDERS.get(entry.kind)
        self.entries.append(entry, adder(self, entry) if adder else None)

    def new_history(self, of: type[T]) -> History[T]:
        """The history of an object of a type."""
        packer = self._packers.get(of)
        if packer is None:
            packer = self._packers[of] = self._packing.packer(Version[of])  # type: ignore[valid-type]
        return History(packer)

    def next_seq(self) -> int:
        return len(self.entries)

    def readings(self, node: str, fact: str) -> list[Fact]:
        """All readings of a host fact, oldest first."""
        return self.host.get((node, fact), [])

    def samples(self, name: str) -> list[Fact]:
        """All samples of this name, oldest first."""
        return self.sampled.get(name, [])

    def blind_windows_in(self, sources: Iterable[str], start: float, end: float) -> list[BlindWindow]:
        """Blind windows of any of ``sources`` that overlap [start, end]; an open one has no end."""
        wanted = tuple(sources)
        found = (b for b in self.blind_windows if b.start <= end and (b.end is None or b.end > start))
        return [b for b in found if any(b.covers(source) for source in wanted)]

    def uncertain_windows(self, source: str) -> list[BlindWindow]:
        """Blind windows of a resource, and the times of changes that came late: their order is uncertain."""
        return [*(b for b in self.blind_windows if b.covers(source)), *self.currency.late_windows(source)]


def _append(timeline: Timeline, histories: dict[Any, History[Any]], key: object, entry: Entry) -> History[Any]:
    """Add the version to the history of its object."""
    metadata, is_deleted = entry.object.metadata, entry.type == "DELETED"
    history = histories.get(key)
    before = None if history is None else history.last.object
    if history is None:
        history = histories[key] = timeline.new_history(type(entry.object))
    timeline.sharing.share(entry.object, before)
    is_new = before is None or before.metadata.uid != metadata.uid
    is_stale = is_deleted and entry.note  # its resourceVersion is that of a state before the deletion
    order = 0 if is_stale else version_number(metadata.resource_version) or 0
    earliest, latest = timeline.currency.interval(entry.kind, entry.object, order, entry.t, is_new=is_new)
    if timeline.currency.losses:
        timeline.blind_windows = [*timeline.blind_windows, *timeline.currency.losses]
        timeline.currency.losses.clear()
    order = order if timeline.currency.is_one_store else 0
    history.append(Version(entry.t, entry.seq, entry.object, is_deleted, bool(entry.note), earliest, order, latest))
    if order and earliest < latest:
        timeline.recent.append((history, len(history) - 1))
    return history


def _key(entry: Entry) -> Key:
    return entry.object.metadata.namespace, entry.object.metadata.name


def _add_node(timeline: Timeline, entry: Entry) -> Holder:
    return _append(timeline, timeline.nodes, entry.object.metadata.name, entry)


def _add_pod(timeline: Timeline, entry: Entry) -> Holder | None:
    if is_helper(entry.object):
        return None  # an instrument of nodefall, as an SSH session: nothing of the cluster's is shown by it
    uid = entry.object.metadata.uid
    known = timeline.pods.get(uid)
    before = known.last.object if known else None
    history = _append(timeline, timeline.pods, uid, entry)
    timeline.pods.index(entry.object.metadata.uid, before)  # the text of the version before, as it is held for long
    return history


def _add_lease(timeline: Timeline, entry: Entry) -> Holder:
    timeline.currency.note_renewal(entry.object, entry.t)
    return _append(timeline, timeline.leases, entry.object.metadata.name, entry)


def _add_workload(timeline: Timeline, entry: Entry) -> Holder:
    metadata = entry.object.metadata
    return _append(timeline, timeline.workloads, (entry.kind, metadata.namespace, metadata.name), entry)


def _add_job(timeline: Timeline, entry: Entry) -> Holder:
    return _append(timeline, timeline.jobs, _key(entry), entry)


def _add_budget(timeline: Timeline, entry: Entry) -> Holder:
    return _append(timeline, timeline.poddisruptionbudgets, _key(entry), entry)


def _add_slice(timeline: Timeline, entry: Entry) -> Holder:
    return _append(timeline, timeline.endpointslices, _key(entry), entry)


def _add_claim(timeline: Timeline, entry: Entry) -> Holder:
    return _append(timeline, timeline.persistentvolumeclaims, _key(entry), entry)


def _add_attachment(timeline: Timeline, entry: Entry) -> Holder:
    return _append(timeline, timeline.volumeattachments, entry.object.metadata.name, entry)


def _add_event(timeline: Timeline, entry: Entry) -> Holder:
    timeline.currency.note_event(entry.seq, entry.object, entry.t)
    timeline.events.record(entry, entry.object)
    return timeline.events


def _add_metrics(timeline: Timeline, entry: Entry) -> None:
    status = version_number(entry.type) or 0
    timeline.metrics.setdefault(entry.node, []).append(Scrape(entry.t, entry.seq, status, entry.object))


def _add_host(timeline: Timeline, entry: Entry) -> None:
    reading = Fact(entry.t, entry.seq, entry.object, entry.since)
    timeline.host.setdefault((entry.node, current_fact(entry.type)), []).append(reading)


def _add_sample(timeline: Timeline, entry: Entry) -> None:
    reading = Fact(entry.t, entry.seq, entry.object, entry.since)
    timeline.sampled.setdefault(entry.type, []).append(reading)


def _add_probe(timeline: Timeline, entry: Entry) -> None:
    timeline.probes.setdefault(entry.type, []).append(ProbeSample(entry.t, entry.seq, entry.object))


def _add_query(timeline: Timeline, entry: Entry) -> None:
    timeline.prometheus.setdefault(entry.type, []).append(QuerySample(entry.t, entry.seq, entry.object))


def _add_action(timeline: Timeline, entry: Entry) -> None:
    timeline.actions.append((entry, entry.object))


def _add_blind(timeline: Timeline, entry: Entry) -> None:
    """Add a window; the entry at its end replaces the one at its start (to = null)."""
    blind: BlindWindow = entry.object
    others = (b for b in timeline.blind_windows if (b.source, b.start, b.end) != (blind.source, blind.start, None))
    timeline.blind_windows = [*others, blind]


def _add_currency(timeline: Timeline, entry: Entry) -> None:
    timeline.currency.add(entry.type, entry.object, entry.t)
    timeline.recent = timeline.currency.narrowed(timeline.recent, entry.t, timeline.pods.note_narrower)


def _add_meta(timeline: Timeline, entry: Entry) -> None:
    timeline.meta.update(entry.object)


_ADDERS: dict[str, Callable[[Timeline, Entry], Holder | None]] = {
    EntryKind.META: _add_meta,
    "nodes": _add_node,
    "pods": _add_pod,
    "leases": _add_lease,
    "events": _add_event,
    "deployments": _add_workload,
    "statefulsets": _add_workload,
    "daemonsets": _add_workload,
    "replicasets": _add_workload,
    "jobs": _add_job,
    "poddisruptionbudgets": _add_budget,
    "endpointslices": _add_slice,
    "persistentvolumeclaims": _add_claim,
    "volumeattachments": _add_attachment,
    EntryKind.METRICS: _add_metrics,
    EntryKind.HOST: _add_host,
    EntryKind.PROBE: _add_probe,
    EntryKind.SAMPLE: _add_sample,
    EntryKind.PROMETHEUS: _add_query,
    EntryKind.ACTION: _add_action,
    EntryKind.BLIND: _add_blind,
    EntryKind.CURRENT: _add_currency,
}
