"""Assertion ``budget-respected``: voluntary disruptions leave each budget enough healthy pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Literal, NamedTuple

from pydantic import Field

from chaos.judge.budgets import is_healthy, matches, selects
from chaos.judge.membership import is_member, require_complete
from chaos.judge.pods import disruption
from chaos.judge.signals import mask, mask_late, mask_pods
from chaos.model.assertion import NothingToJudge, View
from chaos.model.claim import Claim, Names
from chaos.model.document import Model
from chaos.model.indexes import LabelGroup
from chaos.model.kube import LabelSelector, Pod, PodDisruptionBudget
from chaos.model.memo import Memo
from chaos.model.recording import BlindWindow
from chaos.model.signal import Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import History, Timeline, Version

_RELIST = 1.0  # seconds after a blind window in which pods are listed one after the other
_UNKNOWN = "unknown cause"
_SOURCES = ("poddisruptionbudgets", "pods")
_VOLUNTARY = {"EvictionByEvictionAPI": "eviction", "PreemptionByScheduler": "preemption", "": "deletion"}


class Params(Model):
    """Budgets, and the disruptions that must respect them."""

    namespace: str = Field(description="a namespace, or workload")
    name: str | None = Field(None, description="of the PodDisruptionBudget; default: all of the namespace")
    by: list[Literal["eviction", "deletion", "preemption"]] = Field(
        ["eviction", "deletion"],
        min_length=1,
        description="deletion: by anything but the eviction API, a taint, the kubelet or pod GC",
    )


def _cause(version: Version[Pod]) -> str:
    """Cause for which a pod is no longer healthy."""
    if not version.is_deleted and version.object.metadata.deletion_timestamp is None:
        return disruption(version.object) or "not ready"
    reason = disruption(version.object)
    return _VOLUNTARY.get(reason, reason)


class _Change(NamedTuple):
    """A pod that becomes healthy, or is no longer; ``cause``: why not."""

    seq: int
    t: float
    uid: str
    is_healthy: bool
    cause: str


def _changes(selector: LabelSelector | None, history: History[Pod]) -> tuple[_Change, ...]:
    """The changes of one pod, which is not healthy before its first version."""
    found: list[_Change] = []
    for version in history:
        pod = version.object
        healthy = selects(selector, pod) and not version.is_deleted and is_healthy(pod)
        if healthy is not bool(found and found[-1].is_healthy):
            cause = _UNKNOWN if version.final_state_unknown else _cause(version)
            found.append(_Change(version.seq, version.t, pod.metadata.uid, healthy, "" if healthy else cause))
    return tuple(found)


@dataclass
class _HealthyCount:
    """Healthy pods of one budget, updated with each version of the budget and of its pods."""

    by: tuple[str, ...]
    blinds: list[BlindWindow]
    healthy: set[str] = field(default_factory=set)
    losses: Counter[str] = field(default_factory=Counter)
    desired: int | None = None
    is_respected: bool | None = True  # False while a voluntary disruption leaves too few healthy pods

    def apply_budget(self, version: Version[PodDisruptionBudget]) -> Sample:
        """Apply a version of the budget."""
        status = version.object.status
        self.desired = (
            status.desired_healthy if status and not version.is_deleted and not version.final_state_unknown else None
        )
        return self._sample(version.t, version.seq)

    def apply_pod(self, change: _Change) -> Sample:
        """Apply a change of a pod."""
        if change.is_healthy:
            self.healthy.add(change.uid)
        else:
            self.healthy.discard(change.uid)
            self.losses[change.cause] += 1
            if self.desired is not None and len(self.healthy) < self.desired:
                uncertain = change.cause == _UNKNOWN or any(_is_blind_at(blind, change.t) for blind in self.blinds)
                if change.cause in self.by or uncertain:
                    self.is_respected = None if uncertain and self.is_respected else False
        return self._sample(change.t, change.seq)

    def _sample(self, t: float, seq: int) -> Sample:
        if self.desired is None:
            return Sample(t, None, seq, "the budget has no desiredHealthy")
        if len(self.healthy) >= self.desired:
            self.is_respected = True
        lost = ", ".join(f"{count} by {cause}" for cause, count in self.losses.items())
        counts = f"{len(self.healthy)} pods are healthy, {self.desired} are desired"
        return Sample(t, self.is_respected, seq, f"{counts}; lost so far: {lost or 'none'}")


def _is_blind_at(blind: BlindWindow, t: float) -> bool:
    return blind.start <= t and (blind.end is None or t <= blind.end + _RELIST)


def _counted(view: View, memo: Memo, namespace: str, budget: History[PodDisruptionBudget], by: list[str]) -> Signal:
    """Signal of whether the budget is respected, unknown where changes came late."""
    timeline = view.timeline
    spec = budget.last.object.spec
    selector: LabelSelector | None = spec.selector if spec else None
    groups = timeline.pods.label_groups(namespace)

    def select() -> list[LabelGroup]:
        return [group for group in groups if matches(selector, group[0])] if selector else []

    selected = view.memo("labels").recall(timeline, budget, select, len(groups))
    histories = timeline.pods.in_groups(selected)
    late = [timeline.currency.late_windows(source) for source in _SOURCES]

    def make() -> Signal:
        known = view.memo("changes", budget.last.object.metadata.name)
        pods = (known.recall(timeline, pod, partial(_changes, selector, pod), selector) for pod in histories)
        return mask_late(Signal(tuple(_samples(timeline, pods, budget, by))), timeline, *_SOURCES)

    return memo.recall(timeline, budget, make, [history.revision for history in histories], late)


def _samples(
    timeline: Timeline,
    pods: Iterable[tuple[_Change, ...]],
    budget: History[PodDisruptionBudget],
    by: list[str],
) -> Iterator[Sample]:
    count = _HealthyCount(tuple(by), timeline.uncertain_windows("pods"))
    changes: list[_Change | Version[PodDisruptionBudget]] = [*chain.from_iterable(pods), *budget]
    for change in sorted(changes, key=lambda change: change.seq):
        yield count.apply_pod(change) if isinstance(change, _Change) else count.apply_budget(change)


class BudgetRespected:
    """No voluntary disruption leaves a budget fewer healthy pods than its status.desiredHealthy.

    Healthy means Ready and not being deleted (facts 8.2). Lost healthy pods are counted by cause. Losses to taints, the
    kubelet, pod GC or a failure of the pod are involuntary: they use the budget up, but the budget cannot prevent them.
    After a voluntary disruption that leaves too few pods, the budget is violated until enough are healthy again.
    """

    name = "budget-respected"
    summary = "voluntary disruptions never leave a PodDisruptionBudget too few healthy pods"
    example = "{assert: budget-respected, with: {namespace: workload, by: [eviction]}, after: drain, always: {for: 2m}}"
    needs = "the PodDisruptionBudget with its status and its pods, watched without a gap"
    params = Params
    node_fields = ()
    moment_fields = ()
    sources = ("pods", "poddisruptionbudgets")

    def claim(self, params: Params, names: Names) -> Claim:
        *others, last = [f"{cause}s" for cause in params.by]
        by = f"{', '.join(others)} or {last}" if others else last
        name = params.name or names.one_affected()
        all_of = "the workload's budgets" if params.namespace == "workload" else f"budgets of {params.namespace}"
        budget = f"budget {name}" if name else all_of
        return Claim(f"{by} left {budget} enough healthy pods", f"{by} left {budget} too few healthy pods")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        namespace, timeline = view.namespace(params.namespace), view.timeline
        require_complete(view, "poddisruptionbudgets", view.anchor)
        subjects, memo = [], view.memo()
        for key, history in sorted(timeline.poddisruptionbudgets.items()):
            if key[0] != namespace or params.name not in (None, key[1]):
                continue
            if not is_member(history, view.anchor, "poddisruptionbudgets", lambda _: True):
                continue
            signal = mask_pods(_counted(view, memo, namespace, history, list(params.by)), timeline)
            subjects.append(Subject("/".join(key), mask(signal, timeline, "poddisruptionbudgets")))
        if not subjects:
            name = f" {params.name}" if params.name else ""
            raise NothingToJudge(f"no PodDisruptionBudget{name} was observed in {namespace} at the beginning")
        return SubjectSet(f"no {' or '.join(params.by)} leaves a budget too few healthy pods", tuple(subjects))


ASSERTION = BudgetRespected()
