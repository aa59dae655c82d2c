"""The pods that a PodDisruptionBudget selects, and which of them are healthy (facts 8.2), version by version. A
judgment costs only as much as is new since the previous one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from chaos.core.indexes import LabelGroup
from chaos.core.kube import LabelSelector, Pod, PodDisruptionBudget, Requirement, pod_condition
from chaos.core.recording import BlindWindow
from chaos.core.signal import Sample, Signal
from chaos.core.timeline import History, Timeline, Version
from chaos.verdicts.judge.pods import disruption

_RELIST = 1.0  # seconds after a blind window in which pods are listed one after the other
_UNKNOWN = "unknown cause"
_VOLUNTARY = {"EvictionByEvictionAPI": "eviction", "PreemptionByScheduler": "preemption", "": "deletion"}
_LAST = 16  # samples that are saved though they repeat a value: they describe the end, which may not be proven yet
Labels = frozenset[tuple[str, str]]
Versions = Mapping[Labels, Collection[Version[Pod]]]  # by their labels


def selects(selector: LabelSelector | None, pod: Pod) -> bool:
    """Whether the selector selects the pod. As in policy/v1, None selects nothing and an empty selector every pod."""
    return selector is not None and matches(selector, pod.metadata.labels or {})


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether the labels match the selector, like metav1.LabelSelectorAsSelector."""
    equal = all(labels.get(key) == value for key, value in (selector.match_labels or {}).items())
    return equal and all(_meets(labels, requirement) for requirement in selector.match_expressions or ())


def _meets(labels: Mapping[str, str], requirement: Requirement) -> bool:
    exists, values = requirement.key in labels, requirement.values or ()
    if requirement.operator == "Exists":
        return exists
    if requirement.operator == "DoesNotExist":
        return not exists
    is_listed = exists and labels[requirement.key] in values
    return is_listed if requirement.operator == "In" else not is_listed


def is_healthy(pod: Pod) -> bool:
    """Whether the pod is Ready and not being deleted."""
    ready = pod_condition(pod, "Ready")
    return pod.metadata.deletion_timestamp is None and ready is not None and ready.status == "True"


class PodChange(NamedTuple):
    """A pod that becomes healthy, or is no longer; ``cause``: why not. ``order``: the resourceVersion, or 0."""

    seq: int
    t: float
    uid: str
    is_healthy: bool
    cause: str
    order: int = 0


class Desired(NamedTuple):
    """How many healthy pods the budget requires since this moment, or None if that is unknown."""

    seq: int
    t: float
    number: int | None
    order: int = 0


def _cause(version: Version[Pod]) -> str:
    """Cause for which a pod is no longer healthy."""
    if version.final_state_unknown:
        return _UNKNOWN
    if not version.is_deleted and version.object.metadata.deletion_timestamp is None:
        return disruption(version.object) or "not ready"
    reason = disruption(version.object)
    return _VOLUNTARY.get(reason, reason)


class _Count:
    """Healthy pods, and whether the budget is respected: false while a voluntary disruption leaves too few."""

    def __init__(self, by: Iterable[str], blinds: list[BlindWindow]) -> None:
        self._by, self._blinds = tuple(by), blinds
        self._healthy: set[str] = set()
        self._losses: Counter[str] = Counter()
        self._desired: int | None = None
        self._is_respected: bool | None = True

    def apply(self, change: PodChange | Desired) -> Sample:
        if isinstance(change, Desired):
            self._desired = change.number
        elif change.is_healthy:
            self._healthy.add(change.uid)
        else:
            self._lose(change)
        return self._sample(change.t, change.seq)

    def _lose(self, change: PodChange) -> None:
        self._healthy.discard(change.uid)
        self._losses[change.cause] += 1
        if self._desired is not None and len(self._healthy) < self._desired:
            uncertain = change.cause == _UNKNOWN or any(_is_blind_at(blind, change.t) for blind in self._blinds)
            if uncertain and self._is_respected is not False:
                self._is_respected = None
            elif change.cause in self._by:
                self._is_respected = False

    def _sample(self, t: float, seq: int) -> Sample:
        if self._desired is None:
            return Sample(t, None, seq, "the budget has no desiredHealthy")
        if len(self._healthy) >= self._desired:
            self._is_respected = True
        lost = ", ".join(f"{count} by {cause}" for cause, count in self._losses.items())
        counts = f"{len(self._healthy)} pods are healthy, {self._desired} are desired"
        return Sample(t, self._is_respected, seq, f"{counts}; lost so far: {lost or 'none'}")


def _is_blind_at(blind: BlindWindow, t: float) -> bool:
    return blind.start <= t and (blind.end is None or t <= blind.end + _RELIST)


def _labels_of(pod: Pod) -> Labels:
    return frozenset((pod.metadata.labels or {}).items())


class NewVersions:
    """The versions of pods of a namespace that are new since the judgement before."""

    def __init__(self) -> None:
        self._read = self._next = 0  # changes, and the seq of the next entry
        self._labels: dict[str, Labels] = {}  # by the uid of a pod, of its last version

    def take(self, timeline: Timeline, namespace: str) -> Versions:
        """The versions by their labels, and by those that the pod had in its version before.

        None the first time: a new ledger reads all that it needs, and those of an hour are many.
        """
        pods, found = timeline.pods, dict[Labels, dict[int, Version[Pod]]]()
        for uid in dict.fromkeys(uid for uid in pods.changes[self._read :] if pods.was_in(uid, namespace)):
            if not self._next:
                self._labels[uid] = _labels_of(pods[uid].peek()[-1].object)
                continue
            before = self._labels.get(uid)
            for version in pods[uid].since(self._next):
                labels = _labels_of(version.object)
                for each in {labels, labels if before is None else before}:
                    found.setdefault(each, {})[version.seq] = version
                self._labels[uid] = before = labels
        self._read, self._next = len(pods.changes), timeline.next_seq()
        return {labels: versions.values() for labels, versions in found.items()}


class _Samples:
    """The samples that change the value, the one in force at the anchor, and the last: an hour has thousands."""

    def __init__(self, anchor: float) -> None:
        self._anchor = anchor
        self._saved: list[Sample] = []
        self._at_anchor: Sample | None = None  # it repeats the value of the last that is saved
        self._last: deque[Sample] = deque()

    def append(self, sample: Sample) -> None:
        self._last.append(sample)
        if len(self._last) <= _LAST:
            return
        old = self._last.popleft()
        if not self._saved or self._saved[-1].value is not old.value:
            self._save_at_anchor()
            self._saved.append(old)
        elif old.t <= self._anchor:
            self._at_anchor = old
        else:
            self._save_at_anchor()

    def signal(self) -> Signal:
        at_anchor = () if self._at_anchor is None else (self._at_anchor,)
        return Signal((*self._saved, *at_anchor, *self._last))

    def _save_at_anchor(self) -> None:
        if self._at_anchor is not None:
            self._saved.append(self._at_anchor)
            self._at_anchor = None


class BudgetLedger:
    """Whether one budget is respected, found from the versions that are new since the judgement before."""

    def __init__(self, by: Iterable[str], anchor: float) -> None:
        self._by, self._anchor = tuple(by), anchor
        self._selector: LabelSelector | None = None
        self._windows: list[BlindWindow] = []
        self._next = 0  # seq of the first entry that was not taken
        self._log: list[PodChange | Desired] = []
        self.revision = 0  # grows with each change
        self._newest, self._t = 0, float("-inf")  # the highest resourceVersion, and the time, of what was applied
        self._forget()

    def update(
        self,
        timeline: Timeline,
        budget: History[PodDisruptionBudget],
        groups: Iterable[LabelGroup],
        versions: Versions,
        windows: list[BlindWindow],
    ) -> None:
        """Take what is new.

        ``groups``: of the namespace; ``versions``: of its pods, that were not taken; ``windows``: uncertain ones.
        """
        spec = budget.last.object.spec
        selector = spec.selector if spec else None
        if selector != self._selector:
            self._selector = selector
            self._forget()
        if not self._next and selector is not None:
            selected = timeline.pods.in_groups(group for group in groups if matches(selector, group[0]))
            known = [version for pod in selected for version in pod.peek()]
        else:
            of_labels = [versions[labels] for labels in versions if self._selects(labels)]
            by_seq = {version.seq: version for some in of_labels for version in some}
            known = [by_seq[seq] for seq in sorted(by_seq)]
        new: list[PodChange | Desired] = list(self._changes(known))
        if budget.last.seq >= self._next:
            new += [_desired(version) for version in budget.since(self._next)]
        self._next = timeline.next_seq()
        if windows != self._windows:
            self._windows = windows
            self._log, new = [], self._log + new
            self._begin()
        self._apply(new)

    def _apply(self, new: list[PodChange | Desired]) -> None:
        """Apply changes in the order of their resourceVersions; all of them again if one watch is slower."""
        if any(0 < change.order < self._newest for change in new):
            self._log, new = [], self._log + new
            self._begin()
        has_order = all(change.order for change in (*self._log, *new))
        for change in sorted(new, key=lambda change: change.order if has_order else change.seq):
            self._log.append(change)
            self._newest, self._t = max(self._newest, change.order), max(self._t, change.t)
            self._samples.append(self._count.apply(change._replace(t=self._t)))
            self.revision += 1

    def signal(self) -> Signal:
        return self._samples.signal()

    def _forget(self) -> None:
        self._next, self._log = 0, []
        self._healthy: set[str] = set()
        self._selected: dict[Labels, bool] = {}
        self._begin()

    def _begin(self) -> None:
        self._count, self._samples = _Count(self._by, self._windows), _Samples(self._anchor)
        self._newest, self._t = 0, float("-inf")
        self.revision += 1

    def _selects(self, labels: Labels) -> bool:
        selected = self._selected.get(labels)
        if selected is None:
            selected = self._selected[labels] = self._selector is not None and matches(self._selector, dict(labels))
        return selected

    def _changes(self, versions: Iterable[Version[Pod]]) -> Iterator[PodChange]:
        """The changes of pods, which are not healthy before their first versions."""
        for version in versions:
            uid = version.object.metadata.uid
            was_healthy = uid in self._healthy
            selected = self._selects(_labels_of(version.object))
            healthy = selected and not version.is_deleted and is_healthy(version.object)
            if healthy is not was_healthy:
                (self._healthy.add if healthy else self._healthy.discard)(uid)
                yield PodChange(version.seq, version.t, uid, healthy, "" if healthy else _cause(version), version.order)


def _desired(version: Version[PodDisruptionBudget]) -> Desired:
    status = version.object.status
    is_known = status is not None and not version.is_deleted and not version.final_state_unknown
    return Desired(version.seq, version.t, status.desired_healthy if status and is_known else None, version.order)
