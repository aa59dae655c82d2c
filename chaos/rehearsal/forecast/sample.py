"""What one run of a rehearsal gives: what went wrong, under names that are the same in every run; and outages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from msgspec import Struct

from chaos.core.errors import Exit
from chaos.core.kube import Metadata, Pod, controller_of, is_finished, pod_condition
from chaos.core.result import RunResult
from chaos.core.timeline import History, Timeline
from chaos.core.verdict import Status
from chaos.verdicts.outcome.measure import Outcome

OWN = "workload"  # namespace of the workload that an experiment brings; its name has the run's ID
_PLURALS = {"ReplicaSet": "replicasets", "Job": "jobs"}


class Owners:
    """``KIND NAMESPACE/NAME`` of what controls a pod: of a Deployment, not of its ReplicaSet."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._own = str(timeline.meta.get("workload") or "")

    def of(self, pod: Pod) -> tuple[str, str]:
        """Kind and ``NAMESPACE/NAME``; of a pod without a controller, "Pod" and its name."""
        owner, namespace = controller_of(pod), pod.metadata.namespace
        if owner is None:
            return "Pod", self.name(namespace, pod.metadata.name)
        history = self._timeline.workloads.get((_PLURALS.get(owner.kind, ""), namespace, owner.name))
        above = _controller(history.last.object.metadata) if history else None
        kind, name = above or (owner.kind, owner.name)
        return kind, self.name(namespace, name)

    def name(self, namespace: str, name: str) -> str:
        """``NAMESPACE/NAME``."""
        return f"{OWN if namespace == self._own else namespace}/{name}"


def _controller(metadata: Metadata) -> tuple[str, str] | None:
    return next(((owner.kind, owner.name) for owner in metadata.owner_references or () if owner.controller), None)


Windows = Mapping[str, tuple[tuple[float, float], ...]]


class FindingKind(StrEnum):
    """In the order of reports."""

    NO_REPLICA_LEFT = "no-replica-left"
    SINGLE_REPLICA = "single-replica"
    POD_LOST = "pod-lost"
    NO_ROOM = "no-room"
    BUDGET_OVERDRAWN = "budget-overdrawn"
    STUCK_TERMINATING = "stuck-terminating"
    VOLUME_WAIT = "volume-wait"
    EVICTION_DELAYED = "eviction-delayed"


TITLES = {
    FindingKind.NO_REPLICA_LEFT: "All replicas lost at once",
    FindingKind.SINGLE_REPLICA: "Single replica lost",
    FindingKind.POD_LOST: "Pods that nothing replaces",
    FindingKind.NO_ROOM: "No room",
    FindingKind.BUDGET_OVERDRAWN: "Disruption budget overdrawn",
    FindingKind.STUCK_TERMINATING: "StatefulSet pods stuck Terminating",
    FindingKind.VOLUME_WAIT: "Waiting for a volume",
    FindingKind.EVICTION_DELAYED: "Evictions delayed or withheld",
}


class Finding(Struct, frozen=True):
    """``subject``: a workload, budget or node. ``seconds``: how long it lasted, or None for what has no length.

    ``count``: pods; of a budget, by how many it was overdrawn. ``lasts``: whether it was so at the end of the run.
    """

    kind: FindingKind
    subject: str
    count: int
    seconds: float | None
    lasts: bool
    detail: str


@dataclass
class Case:
    """A run. ``fault``: when its first step began, ``down``: when machines were off or unreachable, by node.

    ``until``: the end of what counts, None for that of the observation.
    """

    timeline: Timeline
    fault: float
    down: Windows
    until: float | None = None

    @property
    def end(self) -> float:
        """The end of what counts."""
        return self.timeline.end if self.until is None else self.until

    @cached_property
    def owners(self) -> Owners:
        """Names of workloads."""
        return Owners(self.timeline)


def seconds_between(begin: float, end: float) -> float:
    """Rounded, so that it is the same in every process."""
    return round(end - begin, 3)


_REPLICATED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


@dataclass(frozen=True, slots=True)
class Outage:
    """``before``: pods that served before the fault. ``none`` and ``fewer``: seconds without one, and with fewer."""

    kind: str
    name: str
    before: int
    none: float
    fewer: float
    lasts: bool


def outages(case: Case) -> list[Outage]:
    """Of replicated workloads that had fewer serving pods than before the fault, by name."""
    changes: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    before: dict[tuple[str, str], int] = defaultdict(int)
    for history in case.timeline.pods.values():
        key = case.owners.of(history.last.object)
        if key[0] not in _REPLICATED:
            continue
        before[key] += _serves_before(history, case)
        for begin, end in _serving(history, case):
            changes[key] += [(begin, 1), *([(end, -1)] if end < case.end else [])]
    found = [_outage(key, count, sorted(changes[key]), case) for key, count in sorted(before.items())]
    return [outage for outage in found if outage.before and outage.fewer > 0]


def _outage(key: tuple[str, str], before: int, moments: list[tuple[float, int]], case: Case) -> Outage:
    count, last, none, fewer = 0, case.fault, 0.0, 0.0
    for t, change in [*moments, (case.end, 0)]:
        none += (t - last) * (count <= 0)
        fewer += (t - last) * (count < before)
        last, count = t, count + change
    return Outage(*key, before, round(none, 3), round(fewer, 3), count <= 0)


def _serves_before(history: History[Pod], case: Case) -> bool:
    version = history.at(case.fault)
    if version is None or version.is_deleted or not _is_ready(version.object):
        return False
    node = (version.object.spec.node_name if version.object.spec else None) or ""
    return not any(begin < case.fault <= end for begin, end in case.down.get(node, ()))


def _serving(history: History[Pod], case: Case) -> Iterator[tuple[float, float]]:
    """Spans after the fault in which a pod serves; the first may begin before it."""
    now = history.at(case.fault)
    versions = [*([now] if now else []), *history.after(case.fault)]
    for version, following in pairwise([*versions, None]):
        assert version is not None  # noqa: S101 - only the last one is
        if version.is_deleted or not _is_ready(version.object):
            continue
        begin, end = max(version.t, case.fault), min(following.t, case.end) if following else case.end
        node = (version.object.spec.node_name if version.object.spec else None) or ""
        yield from _without(begin, end, case.down.get(node, ()))


def still_on(case: Case, nodes: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Kind and ``NAMESPACE/NAME`` of what still has pods on ``nodes`` at the end, as from before the fault.

    Without DaemonSets and static pods, which a drain leaves there.
    """
    found, names = set(), frozenset(nodes)
    for history in case.timeline.pods.values():
        before, last = history.at(case.fault), history.at(case.end)
        if before is None or last is None or last.is_deleted or last.object.metadata.deletion_timestamp:
            continue
        key, spec = case.owners.of(last.object), before.object.spec
        if spec and spec.node_name in names and key[0] not in ("DaemonSet", "Node") and not is_finished(last.object):
            found.add(key)
    return tuple(sorted(found))


def _without(begin: float, end: float, windows: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    for start, stop in windows:
        if stop <= begin or start >= end:
            continue
        if start > begin:
            yield begin, start
        begin = stop
    if begin < end:
        yield begin, end


def _is_ready(pod: Pod) -> bool:
    ready = pod_condition(pod, "Ready")
    return ready is not None and ready.status == "True" and pod.metadata.deletion_timestamp is None


@dataclass(frozen=True, slots=True)
class Sample:
    """One run. ``victim``: a node or zone with --each-node or --each-zone, else "".

    ``refused``: why there was no fault, "" if there was one. ``not_modelled``: what the lab left out, one line each.
    ``outages``: of replicated workloads that had fewer serving pods than before. ``outcome``: None if no step was sent.
    ``unevicted``: kind and name of what still had pods on its victims at the end of what counts.
    """

    seed: int
    victim: str
    result: RunResult | None
    findings: tuple[Finding, ...] = ()
    outages: tuple[Outage, ...] = ()
    not_modelled: tuple[str, ...] = ()
    refused: str = ""
    outcome: Outcome | None = None
    unevicted: tuple[tuple[str, str], ...] = ()

    @property
    def ending(self) -> str:
        """held, violated, inconclusive, aborted, refused, or not undone: held, with a pending undo."""
        if self.result is None:
            return "refused"
        is_undone = self.result.exit_code != Exit.UNDO_PENDING or self.result.status is not Status.HELD
        return self.result.ending if is_undone else "not undone"


ALWAYS = (
    "what containers do: they start and end in the measured time, and do not fail because another workload is gone",
    "how long machines boot: the lab's take 5 to 10 s, real ones up to minutes; what waits for one is as much later",
    "networks, load balancers and DNS: traffic is not routed, so how long clients notice is not in the answer",
    "autoscalers of nodes and machine health checks: no node is added, removed, repaired or replaced",
    "CSI drivers: volumes are attached and detached without the errors and limits of a driver",
)


def limits_of(missing: Iterable[str], samples: Sequence[Sample]) -> list[str]:
    """What the snapshot lacks, what the lab left out of it, and what no lab has; without duplicates."""
    left_out = [line for sample in samples for line in sample.not_modelled]
    return list(dict.fromkeys([*missing, *left_out, *ALWAYS]))
